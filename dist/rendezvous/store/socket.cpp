// Connects, listens, sends and receives; waits with poll() until the deadline.
#include <brigade/dist/rendezvous/store/socket.h>

#include <brigade/core/error.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace brigade::dist {

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

namespace {

// Waits until the socket can be read or written; throws TimeoutError at the deadline.
void await(const Socket& socket, short events, Deadline deadline) {
  while (true) {
    const int left = milliseconds_until(deadline);
    pollfd entry{socket.fd(), events, 0};
    const int ready = poll(&entry, 1, left);
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) throw DistError("poll failed: {}", std::strerror(errno));
    if (left == 0) throw TimeoutError("timed out waiting for an answer over TCP");
  }
}

// Whether both ends are the same socket.
bool is_its_own_peer(const Socket& socket) {
  sockaddr_storage own{};
  sockaddr_storage peer{};
  socklen_t own_size = sizeof own;
  socklen_t peer_size = sizeof peer;
  return getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
         getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 && own_size == peer_size &&
         std::memcmp(&own, &peer, own_size) == 0;
}

// For listening at a host name, where the caller gives no deadline.
constexpr std::chrono::seconds kPatienceForName{30};

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}
Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

void send_all(const Socket& socket, const void* data, size_t bytes, Deadline deadline) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    await(socket, POLLOUT, deadline);
    const ssize_t sent = ::send(socket.fd(), at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EAGAIN || errno == EINTR) continue;
      throw PeerError("the connection to the store broke: {}", std::strerror(errno));
    }
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
}

void receive_all(const Socket& socket, void* data, size_t bytes, Deadline deadline) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    await(socket, POLLIN, deadline);
    const ssize_t got = ::recv(socket.fd(), at, bytes, MSG_DONTWAIT);
    if (got == 0) throw PeerError("the connection to the store was closed by the other side");
    if (got < 0) {
      if (errno == EAGAIN || errno == EINTR) continue;
      throw PeerError("the connection to the store broke: {}", std::strerror(errno));
    }
    at += got;
    bytes -= static_cast<size_t>(got);
  }
}

void send_string(const Socket& socket, const std::string& text, Deadline deadline) {
  const auto length = static_cast<uint32_t>(text.size());
  send_all(socket, &length, sizeof length, deadline);
  send_all(socket, text.data(), text.size(), deadline);
}

std::string receive_string(const Socket& socket, Deadline deadline, uint32_t limit) {
  uint32_t length = 0;
  receive_all(socket, &length, sizeof length, deadline);
  if (length > limit)
    throw DistError("a message of {} bytes was announced, more than the {} allowed; the other side is no Brigade store",
                    length, limit);
  std::string text(length, '\0');
  receive_all(socket, text.data(), length, deadline);
  return text;
}

Socket try_connect(const std::string& host, int port, Deadline deadline) {
  const Addresses addresses = resolve(host, port, false, deadline);
  for (const addrinfo* address = addresses.get(); address; address = address->ai_next) {
    Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    // Not retried: a caller that retries until its timeout would blame the other side.
    if (!socket && (errno == EMFILE || errno == ENFILE))
      throw DistError("cannot connect to port {} of {}: {}; raise the limit of open files (ulimit -n)", port, host,
                      std::strerror(errno));
    if (!socket) continue;
    if (connect(socket.fd(), address->ai_addr, address->ai_addrlen) != 0 && errno != EINPROGRESS) continue;
    const auto patience = std::min(deadline, std::chrono::steady_clock::now() + std::chrono::seconds(2));
    try {
      await(socket, POLLOUT, patience);
    } catch (const TimeoutError&) {
      continue;
    }
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) continue;
    if (is_its_own_peer(socket)) {
      // Closed at once, without TIME_WAIT: the port belongs to the store that will listen there.
      const linger none{1, 0};
      setsockopt(socket.fd(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
      continue;
    }
    const int on = 1;
    setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return socket;
  }
  return Socket();
}

Socket listen_on(const std::string& host, int port) {
  const Addresses addresses = resolve(host, port, true, std::chrono::steady_clock::now() + kPatienceForName);
  std::string why = "no address";
  for (const addrinfo* address = addresses.get(); address; address = address->ai_next) {
    Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) {
      why = std::strerror(errno);
      continue;
    }
    const int on = 1;
    setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(socket.fd(), address->ai_addr, address->ai_addrlen) == 0 && listen(socket.fd(), 256) == 0) return socket;
    why = errno == EADDRINUSE ? "it is already in use by another program" : std::strerror(errno);
  }
  throw DistError(
      "cannot listen on port {} of {}: {}; choose another port with --master-port or MASTER_PORT (0 "
      "lets the launcher pick a free one)",
      port, host, why);
}

int local_port(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size);
  return address.ss_family == AF_INET6 ? ntohs(reinterpret_cast<sockaddr_in6*>(&address)->sin6_port)
                                       : ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

namespace {

// `ask` is getsockname or getpeername.
std::string numeric_address(const Socket& socket, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char text[NI_MAXHOST] = {};
  if (ask(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  const int error =
      getnameinfo(reinterpret_cast<sockaddr*>(&address), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text : "";
}

}  // namespace

std::string local_address(const Socket& socket) { return numeric_address(socket, &getsockname); }
std::string peer_address(const Socket& socket) { return numeric_address(socket, &getpeername); }

}  // namespace brigade::dist
