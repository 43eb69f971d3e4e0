// Abstract AF_UNIX sockets: connects, reads credentials, passes descriptors.
#include <brigade/dist/groups/shm/local_socket.h>

#include <brigade/core/error.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace brigade::dist::shm {
namespace {

constexpr int kListed = 128;  // connections that wait to be accepted

struct LocalAddress {
  sockaddr_un address{};
  socklen_t length = 0;
};

LocalAddress address_of(const std::string& name) {
  LocalAddress place;
  place.address.sun_family = AF_UNIX;
  // A leading zero byte: the name is not a path.
  const size_t length = std::min(name.size(), sizeof place.address.sun_path - 1);
  std::memcpy(place.address.sun_path + 1, name.data(), length);
  place.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return place;
}

Socket make_socket() {
  Socket made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) throw DistError("shm: cannot make a local socket: {}", std::strerror(errno));
  return made;
}

std::vector<Socket> descriptors_of(msghdr& header) {
  std::vector<Socket> descriptors;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<const char*>(part) + at, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  return descriptors;
}

}  // namespace

Socket listen_local(const std::string& name) {
  Socket listener = make_socket();
  const LocalAddress place = address_of(name);
  if (bind(listener.fd(), reinterpret_cast<const sockaddr*>(&place.address), place.length) != 0 ||
      listen(listener.fd(), kListed) != 0)
    throw DistError("shm: cannot listen at a local socket: {}", std::strerror(errno));
  return listener;
}

Socket accept_local(const Socket& listener) {
  return Socket(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

Socket connect_local(const std::string& name, Deadline deadline, const std::string& with) {
  const LocalAddress place = address_of(name);
  while (true) {
    Socket connection = make_socket();
    if (connect(connection.fd(), reinterpret_cast<const sockaddr*>(&place.address), place.length) == 0)
      return connection;
    if (errno == ECONNREFUSED) {
      throw PeerError(
          "shm: nobody hands over memory where {} did: it has ended, or is in another network namespace (set "
          "BRIGADE_HOST_ID there to another word, or use the gloo backend)",
          with);
    }
    if (errno != EAGAIN && errno != EINTR)
      throw DistError("shm: cannot connect to {} over a local socket: {}", with, std::strerror(errno));
    if (milliseconds_until(deadline) == 0)
      throw TimeoutError("shm: too many wait at the local socket of {}; no place until the time-out", with);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Credentials peer_of(const Socket& connection) {
  ucred theirs{};
  socklen_t length = sizeof theirs;
  if (getsockopt(connection.fd(), SOL_SOCKET, SO_PEERCRED, &theirs, &length) != 0)
    throw DistError("shm: cannot ask who is on the other side of a local socket: {}", std::strerror(errno));
  return {theirs.uid, theirs.pid};
}

LocalMessage receive_local(const Socket& connection, void* data, size_t bytes, size_t descriptors) {
  iovec part{data, bytes};
  std::vector<char> room(CMSG_SPACE(descriptors * sizeof(int)));
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = room.data();
  header.msg_controllen = room.size();
  ssize_t got = 0;
  do {
    got = recvmsg(connection.fd(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  LocalMessage message;
  if (got < 0) return message;
  message.bytes = static_cast<size_t>(got);
  message.cut = (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  message.descriptors = descriptors_of(header);
  return message;
}

void send_local(const Socket& connection, const void* data, size_t bytes, const std::vector<int>& descriptors,
                Deadline deadline, const std::string& with) {
  iovec part{const_cast<void*>(data), bytes};  // sendmsg only reads it
  std::vector<char> room(CMSG_SPACE(descriptors.size() * sizeof(int)));
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = room.data();
    header.msg_controllen = room.size();
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size() * sizeof(int));
  }
  while (sendmsg(connection.fd(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EPIPE || errno == ECONNRESET)
      throw PeerError("shm: {} went away while the ranks handed each other their memory: it has ended, or refused",
                      with);
    // ETOOMANYREFS: this user has too many descriptors in flight.
    if (errno != EAGAIN && errno != EINTR && errno != ETOOMANYREFS && errno != ENOBUFS)
      throw DistError("shm: cannot hand over memory to {}: {}", with, std::strerror(errno));
    if (milliseconds_until(deadline) == 0) throw TimeoutError("shm: timed out handing over memory to {}", with);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void wait_local(const Socket& connection, Deadline deadline, const std::string& with, const char* what) {
  while (true) {
    pollfd entry{connection.fd(), POLLIN, 0};
    const int left = milliseconds_until(deadline);
    if (poll(&entry, 1, left) > 0) return;
    if (left == 0) throw TimeoutError("shm: timed out waiting for {} {}", with, what);
  }
}

}  // namespace brigade::dist::shm
