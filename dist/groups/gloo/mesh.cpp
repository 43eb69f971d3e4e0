// Connects to the other ranks over TCP, and authenticates incoming connections.
#include <brigade/dist/groups/gloo/connect.h>

#include <brigade/core/error.h>
#include <brigade/dist/rendezvous/rendezvous.h>
#include <brigade/dist/rendezvous/secret.h>
#include <brigade/dist/rendezvous/store.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

namespace brigade::dist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kGreeting = "brigade-gloo-1 ";
// Limit of incoming connections with an incomplete hello; at the limit the oldest is dropped.
constexpr size_t kVisitors = 256;
// How long a failed connection attempt is retried: the rank may be busy with too many strangers.
constexpr std::chrono::seconds kPatience{3};

// The greeting, the listener's nonce, and the rank that connects: of fixed length.
std::string hello_of(int rank, std::string_view nonce) { return fmt::format("{}{} {:08}", kGreeting, nonce, rank); }
const size_t kHelloBytes = hello_of(0, std::string(kTokenBytes, '0')).size();

// The rank in `hello` if the hello proves that its sender knows `nonce`; otherwise -1.
int rank_that_says(std::string_view hello, std::string_view nonce) {
  int rank = -1;
  const size_t before = kGreeting.size() + kTokenBytes + 1;
  if (std::from_chars(hello.data() + before, hello.data() + hello.size(), rank).ec != std::errc() || rank < 0)
    return -1;
  return same_proof(hello, hello_of(rank, nonce)) ? rank : -1;
}

// The address at which a rank listens.
struct Listener {
  std::string address;
  int port = 0;
  std::string nonce;
};

class Meeting {
 public:
  Meeting(Store& store, std::string prefix, const std::string& address, int rank, int size,
          std::chrono::milliseconds timeout, const RankNames& names)
      : store_(store),
        prefix_(std::move(prefix)),
        rank_(rank),
        size_(size),
        deadline_(Clock::now() + timeout),
        names_(names),
        others_(store, prefix_, rank, size, timeout, names),
        listener_(listen_on(address, 0)),
        nonce_(random_token()),
        connections_(static_cast<size_t>(size)),
        places_(static_cast<size_t>(size)) {
    fcntl(listener_.fd(), F_SETFL, fcntl(listener_.fd(), F_GETFL) | O_NONBLOCK);
    store_.set(key(rank), fmt::format("{} {} {}", address, local_port(listener_), nonce_));
  }

  // Connects to lower ranks first: these do not need higher ranks for it, so there are no circular waits.
  std::vector<Socket> meet() {
    for (int r = 0; r < size_; ++r) {
      if (r != rank_) places_[static_cast<size_t>(r)] = place_of(r);
    }
    for (int r = 0; r < rank_; ++r)
      connections_[static_cast<size_t>(r)] = connect_to(r);
    for (int missing = rank_ + 1; missing < size_;) {
      if (connections_[static_cast<size_t>(missing)]) {
        ++missing;
        continue;
      }
      if (Clock::now() >= deadline_) others_.did_not_come(missing, no_room_);
      if (!look()) others_.look(missing);
    }
    return std::move(connections_);
  }

 private:
  struct Visitor {
    Socket connection;
    std::string came;
  };

  std::string key(int rank) const { return fmt::format("{}/gloo/mesh/{}", prefix_, rank); }

  Listener place_of(int rank) {
    const std::string text = others_.get(key(rank), rank);
    Listener place;
    std::istringstream words(text);
    words >> place.address >> place.port >> place.nonce;
    if (place.port <= 0 || place.nonce.size() != kTokenBytes) {
      throw DistError("gloo: expected an address, a port and a nonce of rank {} in the store, got '{}'", names_(rank),
                      text.substr(0, 200));
    }
    return place;
  }

  Socket connect_to(int rank) {
    const Listener& there = places_[static_cast<size_t>(rank)];
    const Deadline patience = std::min(deadline_, Clock::now() + kPatience);
    while (true) {
      Socket connection = try_connect(there.address, there.port, deadline_);
      if (!connection && Clock::now() >= patience) {
        others_.look(rank);
        throw UnreachablePeer(
            fmt::format("nobody answers at {} port {}, where rank {} is", there.address, there.port, names_(rank)));
      }
      if (connection && greet(connection, rank)) return connection;
      if (Clock::now() >= deadline_) others_.did_not_come(rank);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  // False when the other side hung up: it has ended, or has too many visitors.
  bool greet(const Socket& connection, int rank) {
    const std::string hello = hello_of(rank_, places_[static_cast<size_t>(rank)].nonce);
    std::string answer(kTokenBytes, '\0');
    try {
      send_all(connection, hello.data(), hello.size(), deadline_);
      receive_all(connection, answer.data(), answer.size(), deadline_);
    } catch (const PeerError&) {
      return false;
    } catch (const TimeoutError&) {
      others_.did_not_come(rank);
    }
    if (!same_proof(answer, nonce_))
      throw DistError("gloo: who answered at {} is not rank {}", peer_address(connection), names_(rank));
    return true;
  }

  // Waits briefly for a new visitor, or for data from one. Returns whether there was any.
  bool look() {
    std::vector<pollfd> entries{{listener_.fd(), POLLIN, 0}};
    for (const Visitor& visitor : visitors_)
      entries.push_back({visitor.connection.fd(), POLLIN, 0});
    const int most = static_cast<int>(AwaitedRanks::kBetweenLooks.count());
    if (poll(entries.data(), entries.size(), std::min(milliseconds_until(deadline_), most)) == 0) return false;
    std::vector<Visitor> stay;
    for (size_t i = 0; i < visitors_.size(); ++i) {
      if (entries[i + 1].revents == 0 || hear(visitors_[i])) stay.push_back(std::move(visitors_[i]));
    }
    visitors_ = std::move(stay);
    if (entries[0].revents != 0) let_in();
    return true;
  }

  void let_in() {
    Socket connection(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) {
      if (errno == EAGAIN) return;
      // For example, out of descriptors: pending connections stay queued.
      no_room_ = fmt::format("; nobody could be let in: {}, with {} strangers at the door", std::strerror(errno),
                             visitors_.size());
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return;
    }
    if (visitors_.size() == kVisitors) visitors_.erase(visitors_.begin());
    visitors_.push_back({std::move(connection), ""});
  }

  // False when this visitor is done: a rank that has connected, or a stranger.
  bool hear(Visitor& visitor) {
    std::array<char, 256> room{};
    // Never reads past the hello: the bytes after it belong to Gloo.
    const ssize_t got = ::recv(visitor.connection.fd(), room.data(), kHelloBytes - visitor.came.size(), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    visitor.came.append(room.data(), static_cast<size_t>(got));
    if (visitor.came.size() < kHelloBytes) return true;
    const int rank = rank_that_says(visitor.came, nonce_);
    if (rank <= rank_ || rank >= size_ || connections_[static_cast<size_t>(rank)]) return false;
    const std::string& answer = places_[static_cast<size_t>(rank)].nonce;
    if (send(visitor.connection.fd(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
        static_cast<ssize_t>(answer.size()))
      return false;
    connections_[static_cast<size_t>(rank)] = std::move(visitor.connection);
    return false;
  }

  Store& store_;
  const std::string prefix_;
  const int rank_;
  const int size_;
  const Deadline deadline_;
  const RankNames& names_;
  AwaitedRanks others_;
  const Socket listener_;
  const std::string nonce_;
  std::vector<Socket> connections_;  // by rank
  std::vector<Listener> places_;     // by rank
  std::vector<Visitor> visitors_;    // oldest first
  std::string no_room_;              // why accept failed, for errors
};

}  // namespace

std::vector<Socket> connect_mesh(Store& store, const std::string& prefix, const std::string& address, int rank,
                                 int size, std::chrono::milliseconds timeout, const RankNames& names) {
  if (size == 1) return std::vector<Socket>(1);
  return Meeting(store, prefix, address, rank, size, timeout, names).meet();
}

}  // namespace brigade::dist
