// The server of the TCP store: one loop over poll(), which answers each request at once. Waiting is
// the client's affair.
#include <brigade/core/warning.h>
#include <brigade/dist/meeting/store/greeting.h>
#include <brigade/dist/meeting/store/requests.h>
#include <brigade/dist/meeting/store/socket.h>
#include <brigade/dist/meeting/store/sum.h>

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace brigade::dist {

namespace {

// Of refusals, so many are told: whoever comes again and again does not fill the log.
constexpr int kMostWarnings = 10;

Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

// False when the text is not a whole number.
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
    if (!client.greeted && !receive_greeting(client)) return false;
    while (client.greeted && client.buffer.size() >= 4) {
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

  // False when this is no greeting, or one of another job.
  bool receive_greeting(Client& client) {
    const std::string_view came = client.buffer;
    if (!came.starts_with(kStoreMagic.substr(0, came.size()))) return false;
    if (came.size() < kStoreMagic.size() + 4) return true;
    uint32_t length = 0;
    std::memcpy(&length, came.data() + kStoreMagic.size(), 4);
    if (length > kMostGreetingBytes) return false;
    const size_t bytes = kStoreMagic.size() + 4 + length;
    if (came.size() < bytes) return true;
    const std::optional<StoreJob> other = read_greeting(came.substr(kStoreMagic.size() + 4, length));
    if (!other) return false;
    client.buffer.erase(0, bytes);
    const std::string refusal = why_refused({job.run, world_size, ""}, *other);
    client.greeted = refusal.empty();
    if (!client.greeted) tell_refusal(client, *other, refusal);
    return answer_raw(client, kStoreMagic) && answer(client, refusal) && client.greeted;
  }

  void tell_refusal(const Client& client, const StoreJob& other, const std::string& refusal) {
    if (++warnings > kMostWarnings) return;
    tell({fmt::format("the store at port {} has refused {} from {}: {}", local_port(listener),
                      other.who.empty() ? "a process" : other.who, peer_address(client.socket), refusal),
          fmt::format("give each job a port of its own, and all its ranks the same WORLD_SIZE; this job goes on{}",
                      warnings == kMostWarnings ? " (more refusals are not told)" : "")});
  }

  // False when it is no request.
  bool handle(Client& client, const std::string& request) {
    const size_t zero = request.find('\0');
    if ((zero == std::string::npos) != (request[0] == 'G')) return false;
    const std::string key = request.substr(1, zero == std::string::npos ? zero : zero - 1);
    const std::string argument = zero == std::string::npos ? "" : request.substr(zero + 1);
    switch (request[0]) {
      case 'S': values[key] = argument; return answer(client, "ok");
      case 'G': {
        const auto found = values.find(key);
        return answer(client, found == values.end() ? "-" : "=" + found->second);
      }
      case 'A': {
        int64_t amount = 0;
        return read_number(argument, amount) && answer(client, add(key, amount));
      }
      default: return false;
    }
  }

  std::string add(const std::string& key, int64_t amount) {
    const auto found = values.find(key);
    try {
      const int64_t sum = added_to(key, found == values.end() ? nullptr : &found->second, amount);
      return values[key] = std::to_string(sum);
    } catch (const DistError& error) {
      return fmt::format("!{}", error.what());
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

TcpStoreServer::TcpStoreServer(const std::string& host, int port, StoreJob job) : impl_(std::make_unique<Impl>()) {
  impl_->world_size = job.world_size;
  impl_->job = std::move(job);
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

void TcpStoreServer::set_world_size(int world_size) { impl_->world_size = world_size; }

int TcpStoreServer::port() const noexcept { return local_port(impl_->listener); }

}  // namespace brigade::dist
