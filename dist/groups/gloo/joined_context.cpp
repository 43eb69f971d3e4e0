// Replaces the sockets of Gloo's pairs with already connected ones.
//
// Gloo creates a pair in listening state, and has no call to give it a connection. So each new pair gets a connection
// from this process over loopback; then dup3 replaces that connection's descriptor with the peer's socket. Gloo only
// sees that its descriptor is readable and writable.
#include <brigade/dist/groups/gloo/connect.h>

#include <brigade/core/error.h>

#include <gloo/transport/context.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

namespace brigade::dist {
namespace {

namespace tcp = gloo::transport::tcp;

// A random address of 127.0.0.0/8 below kOwnEnd: a stranger that looks for listeners cannot predict it.
std::string loopback_address() {
  unsigned char bytes[3] = {};
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return "127.0.0.1";
  return fmt::format("127.{}.{}.{}", bytes[0] % 200, bytes[1], bytes[2] % 254 + 1);
}
// Gloo connects from the greater address to the smaller one; this is always the greater.
constexpr const char* kOwnEnd = "127.255.255.254";

using AddressOf = int (*)(int, sockaddr*, socklen_t*);
bool has_address(int fd, AddressOf ask, const sockaddr_storage& address) {
  sockaddr_storage found{};
  socklen_t size = sizeof found;
  if (ask(fd, reinterpret_cast<sockaddr*>(&found), &size) != 0 || found.ss_family != AF_INET) return false;
  return std::memcmp(&found, &address, offsetof(sockaddr_in, sin_zero)) == 0;
}

// The descriptor of this process's listener; -1 when it no longer listens there.
int listener_at(const sockaddr_storage& there) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const int fd = std::atoi(entry.path().filename().c_str());
    int listens = 0;
    socklen_t size = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
        has_address(fd, &getsockname, there))
      return fd;
  }
  return -1;
}

// Afterwards only `from` can connect to `there`; port 0 blocks all connections. The kernel drops all other packets (if
// it rejects the filter, Gloo treats strangers as it does by default).
void admit_only(const sockaddr_storage& there, const sockaddr_in& from) {
  constexpr uint32_t kSourcePort = 0;                                       // offset in the TCP header
  constexpr auto kSourceAddress = static_cast<uint32_t>(SKF_NET_OFF) + 12;  // offset in the IP header
  constexpr uint32_t kAll = ~uint32_t{0};
  sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kSourcePort),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohs(from.sin_port), 0, 3),
                         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSourceAddress),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(from.sin_addr.s_addr), 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, kAll),
                         BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog program{std::size(steps), steps};
  if (const int fd = listener_at(there); fd >= 0)
    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

// Binds a port of this process.
Socket bind_own_end(sockaddr_storage& here) {
  Socket own(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in end{};
  end.sin_family = AF_INET;
  inet_pton(AF_INET, kOwnEnd, &end.sin_addr);
  socklen_t size = sizeof here;
  if (bind(own.fd(), reinterpret_cast<const sockaddr*>(&end), sizeof end) != 0 ||
      getsockname(own.fd(), reinterpret_cast<sockaddr*>(&here), &size) != 0)
    return {};
  return own;
}

// The descriptor of the other end; -1 when Gloo has accepted a different connection.
int other_end(const sockaddr_storage& there, const sockaddr_storage& here) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const int fd = std::atoi(entry.path().filename().c_str());
    if (has_address(fd, &getsockname, there) && has_address(fd, &getpeername, here)) return fd;
  }
  return -1;
}

// Makes the pair of `rank` with this connection. False when a stranger connected first.
bool try_join(gloo::transport::Context& transport, tcp::Device& device, int rank, const Socket& connection) {
  gloo::transport::Pair& pair = *transport.createPair(rank);
  const tcp::Address listens(pair.address().bytes());
  const sockaddr_storage& there = listens.getSockaddr();
  sockaddr_storage here{};
  const Socket own = bind_own_end(here);
  if (!own) return false;
  // Later versions of Gloo have one listener for all pairs, for the lifetime of the device, and expect the pair's
  // number: unexpected data from a stranger would terminate the process.
  const ssize_t number = listens.getSeq();
  const bool listens_on = number != tcp::Address::kSequenceNumberUnset;
  if (listens_on) admit_only(there, reinterpret_cast<const sockaddr_in&>(here));
  if (connect(own.fd(), reinterpret_cast<const sockaddr*>(&there), sizeof(sockaddr_in)) != 0) return false;
  if (listens_on) send(own.fd(), &number, sizeof number, MSG_NOSIGNAL);
  pair.connect(tcp::Address(here).bytes());
  const int fd = other_end(there, here);
  if (listens_on) admit_only(there, {});
  if (fd < 0) return false;
  // dup3 closes the old connection, which also removes it from Gloo's epoll set.
  if (dup3(connection.fd(), fd, O_CLOEXEC) < 0)
    throw DistError("gloo: cannot join a connection: {}", std::strerror(errno));
  device.registerDescriptor(fd, EPOLLIN, &dynamic_cast<tcp::Handler&>(pair));
  return true;
}

// Later versions of Gloo number pairs from 0. Starts at a random number, so that a stranger that connects before the
// filter is attached does not match the first pair by sending zeros.
void begin_at_any_number(gloo::transport::Device& device) {
  unsigned char more = 0;
  if (getrandom(&more, 1, 0) != 1) return;
  const auto aside = device.createContext(0, 2);
  for (int i = 0; i <= more; ++i) {
    const tcp::Address address(aside->createPair(1)->address().bytes());
    if (address.getSeq() == tcp::Address::kSequenceNumberUnset) return;
  }
}

void join(gloo::transport::Context& transport, tcp::Device& device, int rank, const Socket& connection) {
  const int on = 1;
  fcntl(connection.fd(), F_SETFL, fcntl(connection.fd(), F_GETFL) | O_NONBLOCK);
  setsockopt(connection.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // Not retried: Gloo cannot make a pair a second time.
  if (!try_join(transport, device, rank, connection))
    throw DistError("gloo: a stranger on this host has taken a connection of this process to itself; start again");
}

std::shared_ptr<gloo::transport::Device> make_device() {
  const std::string address = loopback_address();
  try {
    return tcp::CreateDevice(tcp::attr(address.c_str()));
  } catch (const std::exception& error) {  // Gloo throws several types
    throw DistError("gloo: cannot use {}: {}; a rank needs the loopback interface of its host (ip link set lo up)",
                    address, error.what());
  }
}

}  // namespace

JoinedContext::JoinedContext(int rank, std::vector<Socket> connections, std::chrono::milliseconds timeout)
    : Context(rank, static_cast<int>(connections.size())), connections_(std::move(connections)) {
  device_ = make_device();
  begin_at_any_number(*device_);
  transportContext_ = device_->createContext(rank, size);
  transportContext_->setTimeout(timeout);
  setTimeout(timeout);
  for (int r = 0; r < size; ++r) {
    if (r != rank)
      join(*transportContext_, dynamic_cast<tcp::Device&>(*device_), r, connections_[static_cast<size_t>(r)]);
  }
}

void JoinedContext::break_connections() noexcept {
  for (const Socket& connection : connections_) {
    if (connection) shutdown(connection.fd(), SHUT_RDWR);
  }
}

bool JoinedContext::is_gone(int peer) const noexcept {
  const int fd = connections_[static_cast<size_t>(peer)].fd();
  pollfd entry{fd, POLLRDHUP, 0};
  int unread = 0;
  return poll(&entry, 1, 0) == 1 && ioctl(fd, FIONREAD, &unread) == 0 && unread == 0;
}

}  // namespace brigade::dist
