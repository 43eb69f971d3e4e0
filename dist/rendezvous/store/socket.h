// Small messages over TCP with deadlines, and names of hosts.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <netdb.h>

namespace brigade::dist {

// --- Small messages over TCP with deadlines.

// Owns a file descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) noexcept : fd_(fd) {}
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  int fd() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

using Deadline = std::chrono::steady_clock::time_point;
// For poll(): at least 0.
int milliseconds_until(Deadline deadline);

// Throw TimeoutError, PeerError (the other side closed) or DistError.
void send_all(const Socket& socket, const void* data, size_t bytes, Deadline deadline);
void receive_all(const Socket& socket, void* data, size_t bytes, Deadline deadline);
// Send and receive a length-prefixed string. The receiver refuses more than `limit` bytes, so that a foreign service
// cannot make it allocate them.
void send_string(const Socket& socket, const std::string& text, Deadline deadline);
std::string receive_string(const Socket& socket, Deadline deadline, uint32_t limit = 128 << 20);

// Makes one attempt. Returns an empty socket when no process listens there (yet); throws DistError when the host cannot
// be resolved, TimeoutError when the resolver does not answer in time. While no process listens at a port of this host,
// the kernel may assign that very port to the connecting socket, which then connects to itself: such a connection is
// closed, as if no process listened.
Socket try_connect(const std::string& host, int port, Deadline deadline);
// Port 0 picks a free port. Throws DistError when the port is in use.
Socket listen_on(const std::string& host, int port);
int local_port(const Socket& socket);
// The numeric address of this end of a connection; "" when it has none.
std::string local_address(const Socket& socket);
std::string peer_address(const Socket& socket);

// --- Resolves a host name with a deadline: if the name server does not answer, getaddrinfo blocks for minutes and
// cannot be interrupted.

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;
using Resolver = int (*)(const char*, const char*, const addrinfo*, addrinfo**);  // getaddrinfo

// `passive`: for listening. A numeric address needs no name server. Throws DistError when there is no such host,
// TimeoutError when the name server has not answered by the deadline.
Addresses resolve(const std::string& host, int port, bool passive, Deadline deadline, Resolver resolver = &getaddrinfo);

}  // namespace brigade::dist
