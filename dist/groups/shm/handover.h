// Hands the memory of the ranks of a host to each other: open descriptors over a local socket (SCM_RIGHTS), in a star
// around the first rank.
//
//   1. The first rank listens under an unguessable name, and puts an invitation into the store: that name and two
//      nonces.
//   2. Each other rank connects, and sends the first nonce, its rank and its memory.
//   3. When all have arrived, the first rank sends each the second nonce and the memory of all ranks.
//
// Strangers that can read the store, or the kernel's list of local sockets, can connect too. So both sides ask the
// kernel for the other's credentials (SO_PEERCRED) and refuse a different user, compare the nonces, and accept only
// sealed memory of their own user and of the announced size (SharedFile). A connection that is refused, sends nothing,
// or sends more than expected is closed with all descriptors that it sent; the other ranks continue. Nothing outlives
// the call: no thread, no socket.
#pragma once

#include <brigade/dist/errors/rank_names.h>
#include <brigade/dist/groups/shm/shared_file.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::dist::shm {

// Memory and processes of all ranks, indexed by rank.
struct HandedOver {
  std::vector<SharedFile> memory;  // empty for this rank itself
  std::vector<int> processes;
};

// The first rank's side.
class MemoryHost {
 public:
  // Starts listening. Throws DistError when that is not possible.
  MemoryHost();
  // One line of text for the store.
  const std::string& invitation() const noexcept { return invitation_; }
  // Gives `control` and the memory of all ranks to ranks 1 to `size` - 1. Throws TimeoutError that names a rank that
  // did not arrive, and the process that was refused, if any; PeerError for a rank that went away.
  HandedOver exchange(const SharedFile& control, const SharedFile& own, int size, std::chrono::milliseconds timeout,
                      const RankNames& names);

 private:
  Socket listener_;
  std::string invitation_;
};

// The other ranks' side: sends the memory of `rank`, and receives `control`, of `control_bytes`, and the memory of all
// ranks. Throws TimeoutError; PeerError when the first rank is gone or refuses; DistError when it does not match the
// invitation, or belongs to another user.
HandedOver accept_invitation(std::string_view invitation, int rank, int size, const SharedFile& own,
                             SharedFile& control, size_t control_bytes, std::chrono::milliseconds timeout,
                             const RankNames& names);

}  // namespace brigade::dist::shm
