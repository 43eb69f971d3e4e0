// The TCP store. Every request is one message: an operation, a key, and a value or an amount.
// Waiting is the client's affair (it asks again), so the server is one loop over poll() that never
// blocks for a client.
#include <brigade/dist/meeting/store.h>
#include <brigade/dist/meeting/store/socket.h>
#include <brigade/dist/meeting/store/sum.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace brigade::dist {

namespace {

constexpr std::string_view kMagic = "brigade-store-1\n";
constexpr auto kStep = std::chrono::milliseconds(5);
// For an answer from a server that has accepted: as long as for the connection, within these
// bounds.
constexpr std::chrono::milliseconds kLeastPatience = std::chrono::seconds(1);
constexpr std::chrono::milliseconds kMostPatience = std::chrono::seconds(10);

// A request holds a key beside its value.
constexpr size_t kMostKeyBytes = 64 << 10;
constexpr size_t kMostRequestBytes = kMostStoreValueBytes + kMostKeyBytes + 64;

Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

}  // namespace

struct TcpStoreServer::Impl {
  Socket listener;
  int stop_pipe[2] = {-1, -1};
  std::thread thread;

  // One connection: bytes that have come and not been handled.
  struct Client {
    Socket socket;
    std::string buffer;
    bool greeted = false;
  };
  std::vector<Client> clients;
  std::map<std::string, std::string> values;

  void loop() {
    while (true) {
      std::vector<pollfd> entries{{stop_pipe[0], POLLIN, 0}, {listener.fd(), POLLIN, 0}};
      for (const Client& client : clients)
        entries.push_back({client.socket.fd(), POLLIN, 0});
      if (poll(entries.data(), entries.size(), -1) < 0) continue;
      if (entries[0].revents) return;
      std::vector<Client> kept;
      for (size_t i = 0; i < clients.size(); ++i) {
        if (!entries[i + 2].revents || serve(clients[i])) kept.push_back(std::move(clients[i]));
      }
      clients = std::move(kept);
      if (entries[1].revents) {
        Socket accepted(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
        if (accepted) clients.push_back({std::move(accepted), "", false});
      }
    }
  }

  // False when the connection is to be closed: the client went away, or it does not speak our
  // language.
  bool serve(Client& client) {
    char bytes[64 << 10];
    const ssize_t got = recv(client.socket.fd(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
    client.buffer.append(bytes, static_cast<size_t>(got));
    if (!client.greeted) {
      if (client.buffer.size() < kMagic.size()) return kMagic.starts_with(client.buffer);
      if (!client.buffer.starts_with(kMagic)) return false;
      client.buffer.erase(0, kMagic.size());
      client.greeted = true;
      if (!answer_raw(client, kMagic)) return false;
    }
    while (client.buffer.size() >= 4) {
      uint32_t length = 0;
      std::memcpy(&length, client.buffer.data(), 4);
      if (length == 0 || length > kMostRequestBytes) return false;
      if (client.buffer.size() < 4 + length) return true;
      const std::string request = client.buffer.substr(4, length);
      client.buffer.erase(0, 4 + length);
      if (!handle(client, request)) return false;
    }
    return true;
  }

  // "S key\0value", "G key", "A key\0amount"; the answer to G is "=value" or "-", that to A the sum,
  // or "!" and why there is none.
  bool handle(Client& client, const std::string& request) {
    const size_t zero = request.find('\0');
    const std::string key = request.substr(1, zero == std::string::npos ? std::string::npos : zero - 1);
    const std::string argument = zero == std::string::npos ? "" : request.substr(zero + 1);
    switch (request[0]) {
      case 'S': values[key] = argument; return answer(client, "ok");
      case 'G': {
        const auto found = values.find(key);
        return answer(client, found == values.end() ? "-" : "=" + found->second);
      }
      case 'A': {
        const auto found = values.find(key);
        int64_t sum = 0;
        try {
          sum = added_to(key, found == values.end() ? nullptr : &found->second, std::atoll(argument.c_str()));
        } catch (const DistError& error) {
          return answer(client, fmt::format("!{}", error.what()));
        }
        return answer(client, values[key] = std::to_string(sum));
      }
      default: return false;
    }
  }

  static bool answer(const Client& client, const std::string& text) {
    const auto length = static_cast<uint32_t>(text.size());
    std::string message(4, '\0');
    std::memcpy(message.data(), &length, 4);
    return answer_raw(client, message + text);
  }
  static bool answer_raw(const Client& client, std::string_view bytes) {
    try {
      send_all(client.socket, bytes.data(), bytes.size(), in(std::chrono::seconds(2)));
      return true;
    } catch (const DistError&) {
      return false;
    }
  }
};

TcpStoreServer::TcpStoreServer(const std::string& host, int port) : impl_(std::make_unique<Impl>()) {
  impl_->listener = listen_on(host, port);
  if (pipe2(impl_->stop_pipe, O_CLOEXEC) != 0) throw DistError("cannot make a pipe for the store's thread");
  // Signals are for the program's own threads: a launcher reads them from a descriptor.
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

int TcpStoreServer::port() const noexcept { return local_port(impl_->listener); }

namespace {

class TcpStore final : public Store {
 public:
  TcpStore(const std::string& host, int port, std::chrono::milliseconds timeout)
      : place_(fmt::format("{}:{}", host, port)), patience_(std::clamp(timeout, kLeastPatience, kMostPatience)) {
    const Deadline deadline = in(timeout);
    while (!socket_) {
      socket_ = try_connect(host, port, deadline);
      if (socket_) break;
      if (std::chrono::steady_clock::now() >= deadline) {
        throw TimeoutError(
            "no store answered at {} within {} ms; is rank 0 running, and are MASTER_ADDR and MASTER_PORT right?",
            place_, timeout.count());
      }
      std::this_thread::sleep_for(kStep);
    }
    std::string greeting(kMagic.size(), '\0');
    try {
      send_all(socket_, kMagic.data(), kMagic.size(), in(patience_));
      receive_all(socket_, greeting.data(), greeting.size(), in(std::chrono::seconds(3)));
    } catch (const DistError&) {
      greeting.clear();
    }
    if (greeting != kMagic) {
      throw DistError(
          "what answers at {} is not a Brigade store: another program uses that port; choose another "
          "with --master-port or MASTER_PORT",
          place_);
    }
    address_ = dist::local_address(socket_);
  }

  void set(const std::string& key, const std::string& value) override {
    if (value.size() > kMostStoreValueBytes)
      throw ValueError(
          "store: the value of '{}' has {} bytes, more than the {} that a TCP store takes; give the other ranks large "
          "data by a broadcast",
          key, value.size(), kMostStoreValueBytes);
    ask("S" + checked(key) + '\0' + value);
  }

  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    const Deadline deadline = in(timeout);
    while (true) {
      const std::string answer = ask("G" + checked(key));
      if (answer.starts_with('=')) return answer.substr(1);
      if (std::chrono::steady_clock::now() >= deadline) {
        throw TimeoutError("the key '{}' did not appear in the store at {} within {} ms", key, place_, timeout.count());
      }
      std::this_thread::sleep_for(kStep);
    }
  }

  int64_t add(const std::string& key, int64_t amount) override {
    const std::string answer = ask("A" + checked(key) + '\0' + std::to_string(amount));
    if (answer.starts_with('!')) throw DistError(answer.substr(1));
    return std::atoll(answer.c_str());
  }
  bool check(const std::string& key) override { return ask("G" + checked(key)).starts_with('='); }
  std::string local_address() const override { return address_; }

 private:
  // A zero byte ends the key in a request.
  static const std::string& checked(const std::string& key) {
    if (key.size() > kMostKeyBytes)
      throw ValueError("store: a key has at most {} bytes, got {}", kMostKeyBytes, key.size());
    if (key.find('\0') != std::string::npos)
      throw ValueError("store: a key holds no zero byte, got one at place {}", key.find('\0'));
    return key;
  }

  std::string ask(const std::string& request) {
    std::lock_guard lock(mutex_);
    if (!socket_) throw PeerError("the connection to the store at {} was lost before", place_);
    try {
      send_string(socket_, request, in(patience_));
      return receive_string(socket_, in(patience_));
    } catch (const DistError&) {
      // An answer that comes late would be taken for that of the next question. And who asks again
      // after a time-out must not wait once more.
      socket_ = Socket();
      throw;
    }
  }

  std::string place_;
  std::chrono::milliseconds patience_;  // for an answer
  std::string address_;
  Socket socket_;
  std::mutex mutex_;
};

}  // namespace

std::shared_ptr<Store> connect_tcp_store(const std::string& host, int port, std::chrono::milliseconds timeout) {
  return std::make_shared<TcpStore>(host, port, timeout);
}

}  // namespace brigade::dist
