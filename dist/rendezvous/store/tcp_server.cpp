// The server of the TCP store: one poll() loop that answers each request at once and never blocks; clients wait by
// polling. A misbehaving or expensive client loses at most its own connection.
#include <brigade/core/warning.h>
#include <brigade/dist/rendezvous/secret.h>
#include <brigade/dist/rendezvous/store/greeting.h>
#include <brigade/dist/rendezvous/store/server.h>
#include <brigade/dist/rendezvous/store/socket.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace brigade::dist {
namespace {

// The number of refusals that are reported, so that a client that retries does not fill the log.
constexpr int kMostWarnings = 10;

// The pause between attempts to accept when no descriptor is free.
constexpr auto kPause = std::chrono::milliseconds(50);
// The number of connections accepted per turn, so that a flood does not delay answers to connected clients.
constexpr int kMostAccepted = 64;

// False when the text is not an integer.
bool read_number(std::string_view text, int64_t& number) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end;
}

}  // namespace

struct TcpStoreServer::Impl {
  Socket listener;
  StoreJob job;
  std::atomic<int> world_size{0};
  int warnings = 0;
  bool told_no_room = false;
  int stop_pipe[2] = {-1, -1};
  std::thread thread;

  explicit Impl(const StoreLimits& given) : limits(given), values(given) {}

  const StoreLimits limits;
  StoredValues values;
  std::vector<Connection> connections;  // in the order of their arrival
  size_t greeted = 0;
  mutable std::mutex here_mutex;
  std::multiset<std::string> here;  // names of clients that have greeted
  size_t under_way = 0;             // bytes of incomplete requests
  Deadline accept_after = {};

  void loop() {
    while (true) {
      try {
        if (!turn()) return;
      } catch (const std::exception&) {  // out of memory, even for the loop itself
        if (!connections.empty()) drop(largest());
      }
    }
  }

  // One iteration of the loop; false when it must stop.
  bool turn() {
    const auto now = std::chrono::steady_clock::now();
    std::vector<pollfd> entries{{stop_pipe[0], POLLIN, 0}, {now < accept_after ? -1 : listener.fd(), POLLIN, 0}};
    for (const Connection& connection : connections) {
      // A client that has not read its answer cannot send another request.
      const short events = connection.pending() ? POLLOUT : POLLIN;
      entries.push_back({connection.socket.fd(), events, 0});
    }
    if (poll(entries.data(), entries.size(), time_to_next_step(now)) < 0) {
      if (errno != EINTR) std::this_thread::sleep_for(kPause);
      return true;
    }
    if (entries[0].revents) return false;
    // From the end, so that dropping one keeps the indices of the earlier ones.
    for (size_t i = connections.size(); i-- > 0;)
      if ((entries[i + 2].revents && !serve_safely(connections[i])) || late(connections[i])) drop(i);
    if (entries[1].revents) accept_some();
    return true;
  }

  // Milliseconds for poll(): until a connection may be late, or accepting goes on.
  int time_to_next_step(Deadline now) const {
    Deadline next = accept_after > now ? accept_after : Deadline::max();
    for (const Connection& connection : connections)
      next = std::min(next, deadline_of(connection));
    if (next == Deadline::max()) return -1;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - now).count();
    return static_cast<int>(std::clamp<int64_t>(left + 1, 0, 60'000));
  }
  Deadline deadline_of(const Connection& connection) const {
    if (!connection.greeted) return connection.since + limits.greeting;
    return connection.busy() ? connection.moved + limits.stall : Deadline::max();
  }
  bool late(const Connection& connection) const { return std::chrono::steady_clock::now() > deadline_of(connection); }

  size_t largest() const {
    const auto found = std::max_element(connections.begin(), connections.end(),
                                        [](const auto& a, const auto& b) { return a.came.size() < b.came.size(); });
    return static_cast<size_t>(found - connections.begin());
  }
  void drop(size_t i) {
    under_way -= connections[i].came.size();
    greeted -= connections[i].greeted;
    if (connections[i].greeted) {
      const std::lock_guard lock(here_mutex);
      here.erase(here.find(connections[i].who));
    }
    connections.erase(connections.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void drop_oldest_stranger() {
    const auto found = std::find_if(connections.begin(), connections.end(), [](const auto& c) { return !c.greeted; });
    if (found != connections.end()) drop(static_cast<size_t>(found - connections.begin()));
  }

  void accept_some() {
    for (int i = 0; i < kMostAccepted; ++i) {
      Socket accepted(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!accepted) {
        if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
        // Pending connections keep the listener readable: without a pause this would spin.
        accept_after = std::chrono::steady_clock::now() + kPause;
        tell_no_room(errno);
        return drop_oldest_stranger();
      }
      // An answer is sent in two pieces; without TCP_NODELAY the second would wait for the acknowledgment of the first.
      const int on = 1;
      setsockopt(accepted.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      if (connections.size() - greeted >= limits.strangers) drop_oldest_stranger();
      const auto now = std::chrono::steady_clock::now();
      Connection& connection = connections.emplace_back();
      connection.socket = std::move(accepted);
      connection.since = connection.moved = now;
    }
  }

  // Warns once. The clients that wait only see that the store does not answer.
  void tell_no_room(int reason) {
    if (std::exchange(told_no_room, true)) return;
    tell(
        {fmt::format("the store at port {} cannot let anybody in now: {}; {} ranks and launchers and {} strangers are "
                     "connected",
                     local_port(listener), std::strerror(reason), greeted, connections.size() - greeted),
         "strangers make room, the oldest first; where ranks do not get in, raise the limit of open files (ulimit -n), "
         "and see who connects to this port"});
  }

  // False when the connection must be closed: the client is gone, it violates the protocol, or there is no memory for
  // its data.
  bool serve_safely(Connection& connection) {
    const size_t before = connection.came.size();
    bool good = false;
    try {
      good = serve(connection);
    } catch (const std::exception&) {
      good = false;
    }
    under_way += connection.came.size() - before;
    return good && under_way <= limits.total_bytes;
  }
  bool serve(Connection& connection) {
    if (connection.pending()) {
      if (!connection.flush()) return false;
      if (connection.pending()) return true;
    } else if (!connection.receive()) {
      return false;
    }
    if (!connection.greeted && !receive_greeting(connection)) return false;
    while (connection.greeted && !connection.pending() && connection.came.size() >= 4) {
      uint32_t length = 0;
      std::memcpy(&length, connection.came.data(), 4);
      if (length == 0 || length > kMostRequestBytes) return false;
      if (connection.came.size() < 4 + static_cast<size_t>(length)) return true;
      if (!handle(connection, std::string_view(connection.came).substr(4, length))) return false;
      connection.came.erase(0, 4 + static_cast<size_t>(length));
      if (connection.came.empty()) connection.came.shrink_to_fit();
    }
    return true;
  }

  // False when this is not a greeting.
  bool receive_greeting(Connection& client) {
    return client.nonce.empty() ? receive_first_words(client) : receive_proof(client);
  }

  bool receive_first_words(Connection& client) {
    const std::string_view came = client.came;
    if (!came.starts_with(kStoreFamily.substr(0, came.size()))) return false;
    if (came.size() < kStoreMagic.size() + 4) return true;
    uint32_t length = 0;
    std::memcpy(&length, came.data() + kStoreMagic.size(), 4);
    if (length > kMostGreetingBytes) return false;
    const size_t bytes = kStoreMagic.size() + 4 + length;
    if (came.size() < bytes) return true;
    const std::string magic(came.substr(0, kStoreMagic.size()));
    std::string text(came.substr(kStoreMagic.size() + 4, length));
    client.came.erase(0, bytes);
    client.head = kStoreMagic;
    if (magic != kStoreMagic) return refuse(client, "", other_version(kStoreMagic, magic));
    const std::optional<Greeting> other = read_greeting(text);
    if (!other) return false;
    const Refusal refusal = why_stranger(job, *other);
    if (!refusal.reason.empty()) return refuse(client, other->job.who, refusal);
    if (job.secret.empty()) return welcome(client, other->job, "");
    client.greeting = std::move(text);
    client.nonce = random_token();
    return client.answer("?" + client.nonce) && receive_proof(client);  // the client may have sent it already
  }

  bool receive_proof(Connection& client) {
    uint32_t length = 0;
    if (client.came.size() < sizeof length) return true;
    std::memcpy(&length, client.came.data(), sizeof length);
    if (length != kProofBytes) return false;
    if (client.came.size() < sizeof length + length) return true;
    const std::string proof = client.came.substr(sizeof length, length);
    client.came.erase(0, sizeof length + length);
    const StoreJob other = read_greeting(client.greeting).value().job;
    if (!same_proof(proof, proof_of(Prover::client, job.secret, client.nonce, client.greeting)))
      return refuse(client, other.who, wrong_secret());
    return welcome(client, other, proof_of(Prover::store, job.secret, client.nonce, client.greeting));
  }

  bool welcome(Connection& client, const StoreJob& other, const std::string& proof) {
    Refusal refusal = why_refused({.world_size = world_size}, other);
    if (refusal.reason.empty() && greeted >= limits.connections)
      refusal = {fmt::format("it has {} connections, which is all that it may", greeted),
                 "look for processes that connect again and again"};
    if (!refusal.reason.empty()) return refuse(client, other.who, refusal);
    client.greeted = true;
    client.who = other.who;
    {
      const std::lock_guard lock(here_mutex);
      here.insert(client.who);
    }
    client.greeting = client.nonce = "";
    ++greeted;
    return client.answer("=" + proof);
  }

  bool refuse(Connection& client, const std::string& who, const Refusal& refusal) {
    client.closing = true;
    if (++warnings <= kMostWarnings)
      tell({fmt::format("the store at port {} has refused {} from {}: {}", local_port(listener),
                        who.empty() ? "a process" : who, peer_address(client.socket), refusal.reason),
            fmt::format("{}; this job goes on{}", refusal.advice,
                        warnings == kMostWarnings ? " (more refusals are not told)" : "")});
    return client.answer("!" + refusal.reason);
  }

  // False when `request` is invalid.
  bool handle(Connection& client, std::string_view request) {
    const size_t zero = request.find('\0');
    if ((zero == std::string_view::npos) != (request[0] == 'G')) return false;
    const std::string key(request.substr(1, zero == std::string_view::npos ? zero : zero - 1));
    const std::string_view argument = zero == std::string_view::npos ? "" : request.substr(zero + 1);
    if (key.size() > kMostKeyBytes || argument.size() > kMostStoreValueBytes) return false;
    int64_t amount = 0;
    switch (request[0]) {
      case 'S':
        return answer_or_reason(client, [&] {
          values.set(key, std::string(argument));
          return std::string("ok");
        });
      case 'A':
        if (!read_number(argument, amount)) return false;
        return answer_or_reason(client, [&] { return std::to_string(values.add(key, amount)); });
      case 'G': {
        const auto found = values.find(key);
        return client.answer(found ? "=" : "-", found);
      }
      default: return false;
    }
  }

  template <class F>
  bool answer_or_reason(Connection& client, F&& run) {
    std::string text;
    try {
      text = run();
    } catch (const DistError& error) {
      text = fmt::format("!{}", error.what());
    }
    return client.answer(text);
  }
};

TcpStoreServer::TcpStoreServer(const std::string& host, int port, StoreJob job, const StoreLimits& limits)
    : impl_(std::make_unique<Impl>(limits)) {
  impl_->world_size = job.world_size;
  impl_->job = std::move(job);
  impl_->listener = listen_on(host, port);
  fcntl(impl_->listener.fd(), F_SETFL, O_NONBLOCK);
  if (pipe2(impl_->stop_pipe, O_CLOEXEC) != 0) throw DistError("cannot make a pipe for the store's thread");
  // Signals are left to the program's own threads: a launcher reads them from a descriptor.
  sigset_t all;
  sigset_t previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  impl_->thread = std::thread([impl = impl_.get()] { impl->loop(); });
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

TcpStoreServer::~TcpStoreServer() {
  close(impl_->stop_pipe[1]);
  impl_->thread.join();
  close(impl_->stop_pipe[0]);
}

void TcpStoreServer::set_world_size(int world_size) { impl_->world_size = world_size; }

bool TcpStoreServer::is_connected(const std::string& who) const {
  const std::lock_guard lock(impl_->here_mutex);
  return impl_->here.contains(who);
}

int TcpStoreServer::port() const noexcept { return local_port(impl_->listener); }

}  // namespace brigade::dist
