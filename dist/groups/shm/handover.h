// How the ranks of a host hand each other their memory: as open descriptors over a local socket
// (SCM_RIGHTS), in a star around the first rank.
//
//   1. The first rank listens under a name that nobody can guess, and invites the others through
//      the store: that name, and two nonces.
//   2. Each other rank connects, and sends the first nonce, its number and its memory.
//   3. When all have come, the first rank sends each the second nonce and the memory of all.
//
// Who reads the store, or the kernel's list of local sockets, can come too. So both sides ask the
// kernel who the other one is (SO_PEERCRED) and refuse another user, compare the nonces, and take
// nothing but sealed memory of their own user and of the announced size (SharedFile). Whoever is
// refused, says nothing, or sends more than was asked for is closed together with all that it
// sent, and the others go on. Nothing here outlives the call: no thread, no socket.
#pragma once

#include <brigade/dist/errors/rank_names.h>
#include <brigade/dist/groups/shm/shared_file.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::dist::shm {

// Of all ranks, by number.
struct HandedOver {
  std::vector<SharedFile> memory;  // an empty one for the rank itself
  std::vector<int> processes;
};

// The first rank's side.
class MemoryHost {
 public:
  // Listens. Throws DistError when that is not possible.
  MemoryHost();
  // For the store: a text without a line's end.
  const std::string& invitation() const noexcept { return invitation_; }
  // Gives `control` and everybody's memory to ranks 1 to `size` - 1. Throws TimeoutError that names
  // a rank that did not come, and who was refused meanwhile; PeerError for one that went away.
  HandedOver exchange(const SharedFile& control, const SharedFile& own, int size, std::chrono::milliseconds timeout,
                      const RankNames& names);

 private:
  Socket listener_;
  std::string invitation_;
};

// The side of the others: gives the memory of `rank`, and gets `control`, of `control_bytes`, and
// everybody's. Throws TimeoutError; PeerError when the first rank is gone or refuses; DistError when
// it is not what the invitation said, or not of this user.
HandedOver accept_invitation(std::string_view invitation, int rank, int size, const SharedFile& own,
                             SharedFile& control, size_t control_bytes, std::chrono::milliseconds timeout,
                             const RankNames& names);

}  // namespace brigade::dist::shm
