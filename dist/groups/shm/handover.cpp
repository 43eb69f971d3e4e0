// Exchanges memory between the ranks of a host, and refuses strangers.
#include <brigade/dist/groups/shm/handover.h>

#include <brigade/core/error.h>
#include <brigade/dist/errors/error_file.h>
#include <brigade/dist/groups/shm/control.h>
#include <brigade/dist/groups/shm/local_socket.h>
#include <brigade/dist/rendezvous/secret.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <thread>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace brigade::dist::shm {
namespace {

using Clock = std::chrono::steady_clock;
using Nonce = std::array<char, kTokenBytes>;

// Limit of connections that have sent nothing yet; at the limit the oldest is dropped.
constexpr size_t kVisitors = 2 * kMaxRanks;

// Sent by a rank, with the descriptor of its memory.
struct Hello {
  Nonce nonce;
  int32_t rank;
  uint64_t bytes;  // of its memory
};

// Sent to a rank, with the descriptors of control and of all other ranks, in rank order.
struct Answer {
  Nonce nonce;
  int32_t size;
  int32_t processes[kMaxRanks];
  uint64_t bytes[kMaxRanks];
};

std::string_view text_of(const Nonce& nonce) { return {nonce.data(), nonce.size()}; }

// The first rank's invitation, as read from the store.
struct Invitation {
  std::string name;
  Nonce hello{};
  Nonce answer{};
};

Invitation read_invitation(std::string_view text) {
  std::istringstream words{std::string(text)};
  Invitation invitation;
  std::string hello;
  std::string answer;
  words >> invitation.name >> hello >> answer;
  if (invitation.name.empty() || hello.size() != invitation.hello.size() || answer.size() != invitation.answer.size())
    throw DistError("shm: expected a name and two nonces where the first rank invites the others, got '{}'",
                    text.substr(0, 200));
  std::copy(hello.begin(), hello.end(), invitation.hello.begin());
  std::copy(answer.begin(), answer.end(), invitation.answer.begin());
  return invitation;
}

// A rank that has connected.
struct Guest {
  Socket connection;
  int process = 0;
  SharedFile memory;
};

// The first rank's listener: accepts the ranks and refuses strangers.
class Door {
 public:
  Door(const Socket& listener, const Nonce& nonce, int size)
      : listener_(listener), nonce_(nonce), guests_(static_cast<size_t>(size)) {}

  // The lowest rank that has not arrived; -1 when all have.
  int missing() const {
    for (size_t r = 1; r < guests_.size(); ++r) {
      if (!guests_[r].connection) return static_cast<int>(r);
    }
    return -1;
  }
  std::vector<Guest>& guests() noexcept { return guests_; }
  // Text on the last refusal, for timeout errors; "" when no connection was refused.
  const std::string& refused() const noexcept { return refused_; }

  // Waits for a new visitor, or for the message of one.
  void look(Deadline deadline) {
    std::vector<pollfd> entries{{listener_.fd(), POLLIN, 0}};
    for (const Visitor& visitor : visitors_)
      entries.push_back({visitor.connection.fd(), POLLIN, 0});
    poll(entries.data(), entries.size(), milliseconds_until(deadline));
    std::vector<Visitor> quiet;
    for (size_t i = 0; i < visitors_.size(); ++i) {
      if (entries[i + 1].revents != 0) {
        hear(visitors_[i]);
      } else {
        quiet.push_back(std::move(visitors_[i]));
      }
    }
    visitors_ = std::move(quiet);
    if (entries[0].revents != 0) open();
  }

 private:
  struct Visitor {
    Socket connection;
    int process;
  };

  void refuse(std::string why) { refused_ = std::move(why); }

  void open() {
    Socket connection = accept_local(listener_);
    if (!connection) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
      // For example, out of descriptors: pending connections stay queued.
      refuse(fmt::format("nobody could be let in: {}", std::strerror(errno)));
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return;
    }
    const Credentials theirs = peer_of(connection);
    if (theirs.user != geteuid()) {
      refuse(fmt::format("process {} of user {} was refused, this process runs as user {}", theirs.process, theirs.user,
                         geteuid()));
      return;
    }
    if (visitors_.size() == kVisitors) visitors_.erase(visitors_.begin());
    visitors_.push_back({std::move(connection), theirs.process});
  }

  // A visitor has one message: if it is not a valid hello of a rank, the connection is closed.
  void hear(Visitor& visitor) {
    Hello hello{};
    LocalMessage message = receive_local(visitor.connection, &hello, sizeof hello, 1);
    const auto stranger = [&](const char* why) {
      refuse(fmt::format("process {} was refused: {}", visitor.process, why));
    };
    if (message.bytes != sizeof hello) return stranger("it did not speak as a rank");
    if (!same_proof(text_of(hello.nonce), text_of(nonce_))) return stranger("it does not know the nonce of this group");
    if (message.cut || message.descriptors.size() != 1) return stranger("it did not send one descriptor");
    if (hello.rank < 1 || hello.rank >= static_cast<int>(guests_.size()))
      return stranger("it is no rank of this group");
    Guest& guest = guests_[static_cast<size_t>(hello.rank)];
    if (guest.connection) return stranger("its rank had come already");
    try {
      guest.memory = SharedFile(std::move(message.descriptors[0]), hello.bytes, fmt::format("of rank {}", hello.rank));
    } catch (const DistError& error) {
      return stranger(error.what());
    }
    guest.process = visitor.process;
    guest.connection = std::move(visitor.connection);
  }

  const Socket& listener_;
  const Nonce nonce_;
  std::vector<Visitor> visitors_;  // that have sent nothing, oldest first
  std::vector<Guest> guests_;      // indexed by rank
  std::string refused_;
};

}  // namespace

MemoryHost::MemoryHost() {
  const std::string name = "brigade-" + random_token();
  listener_ = listen_local(name);
  invitation_ = fmt::format("{} {} {}", name, random_token(), random_token());
}

HandedOver MemoryHost::exchange(const SharedFile& control, const SharedFile& own, int size,
                                std::chrono::milliseconds timeout, const RankNames& names) {
  const Deadline deadline = Clock::now() + timeout;
  const Invitation said = read_invitation(invitation_);
  Door door(listener_, said.hello, size);
  for (int missing = door.missing(); missing >= 0; missing = door.missing()) {
    if (Clock::now() >= deadline) {
      const std::string text =
          fmt::format("rendezvous: rank {} waited {} ms for the memory of rank {}{}, which did not join{}{}", names(0),
                      timeout.count(), names(missing), names.own() ? fmt::format(" of {}", size) : "",
                      door.refused().empty() ? "" : "; ", door.refused());
      leave_consequence(text, {names(missing).global});
      throw TimeoutError(text);
    }
    door.look(deadline);
  }
  std::vector<Guest>& guests = door.guests();
  Answer answer{said.answer, size, {}, {}};
  HandedOver all;
  for (size_t r = 0; r < guests.size(); ++r) {
    answer.processes[r] = r == 0 ? getpid() : guests[r].process;
    answer.bytes[r] = r == 0 ? own.bytes() : guests[r].memory.bytes();
    all.processes.push_back(answer.processes[r]);
  }
  for (size_t r = 1; r < guests.size(); ++r) {
    std::vector<int> descriptors{control.fd(), own.fd()};
    for (size_t other = 1; other < guests.size(); ++other) {
      if (other != r) descriptors.push_back(guests[other].memory.fd());
    }
    // One rank at a time, each after the previous one has received everything: the number of descriptors in flight per
    // user is limited.
    const std::string with = fmt::format("rank {}", names(static_cast<int>(r)));
    send_local(guests[r].connection, &answer, sizeof answer, descriptors, deadline, with);
    char taken = 0;
    if (wait_local(guests[r].connection, deadline, with, "to take the memory of the others");
        receive_local(guests[r].connection, &taken, 1, 0).bytes != 1)
      throw PeerError("shm: {} went away while the ranks handed each other their memory", with);
  }
  for (Guest& guest : guests)
    all.memory.push_back(std::move(guest.memory));
  return all;
}

HandedOver accept_invitation(std::string_view invitation, int rank, int size, const SharedFile& own,
                             SharedFile& control, size_t control_bytes, std::chrono::milliseconds timeout,
                             const RankNames& names) {
  const Deadline deadline = Clock::now() + timeout;
  const Invitation said = read_invitation(invitation);
  const std::string with = fmt::format("rank {}", names(0));
  const Socket connection = connect_local(said.name, deadline, with);
  if (const Credentials theirs = peer_of(connection); theirs.user != geteuid()) {
    throw DistError("shm: {} runs as user {}, rank {} as user {}; the ranks of a host share memory under one user only",
                    with, theirs.user, names(rank), geteuid());
  }
  Hello hello{said.hello, rank, own.bytes()};
  send_local(connection, &hello, sizeof hello, {own.fd()}, deadline, with);
  wait_local(connection, deadline, with, "to hand over the memory of all ranks");
  Answer answer{};
  LocalMessage message = receive_local(connection, &answer, sizeof answer, static_cast<size_t>(size));
  if (message.bytes == 0) throw PeerError("shm: {} gave no memory: it has ended, or refused this process", with);
  if (message.bytes != sizeof answer || answer.size != size || !same_proof(text_of(answer.nonce), text_of(said.answer)))
    throw DistError("shm: who answered is not {} of this group", with);
  if (message.cut || message.descriptors.size() != static_cast<size_t>(size)) {
    throw DistError("shm: expected {} descriptors from {}, got {}; this process may have too few (ulimit -n)", size,
                    with, message.descriptors.size());
  }
  control = SharedFile(std::move(message.descriptors[0]), control_bytes, "of " + with);
  HandedOver all;
  for (int r = 0, next = 1; r < size; ++r) {
    all.processes.push_back(answer.processes[r]);
    all.memory.emplace_back();
    if (r == rank) continue;
    all.memory.back() = SharedFile(std::move(message.descriptors[static_cast<size_t>(next++)]), answer.bytes[r],
                                   fmt::format("of rank {}", names(r)));
  }
  send_local(connection, "k", 1, {}, deadline, with);
  return all;
}

}  // namespace brigade::dist::shm
