// Receives and sends without blocking.
#include <brigade/dist/rendezvous/store/server.h>

#include <cerrno>
#include <cstdint>

#include <sys/socket.h>

namespace brigade::dist {
namespace {

bool would_wait() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

bool Connection::receive() {
  char bytes[64 << 10];
  const ssize_t got = ::recv(socket.fd(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (got <= 0) return got < 0 && would_wait();
  came.append(bytes, static_cast<size_t>(got));
  moved = std::chrono::steady_clock::now();
  return true;
}

bool Connection::answer(std::string_view prefix, std::shared_ptr<const std::string> rest) {
  const auto length = static_cast<uint32_t>(prefix.size() + (rest ? rest->size() : 0));
  head.append(reinterpret_cast<const char*>(&length), sizeof length);
  head += prefix;
  body = std::move(rest);
  return flush();
}

bool Connection::flush() {
  const size_t all = head.size() + (body ? body->size() : 0);
  while (sent < all) {
    const std::string& part = sent < head.size() ? head : *body;
    const size_t at = sent < head.size() ? sent : sent - head.size();
    const ssize_t went = ::send(socket.fd(), part.data() + at, part.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (went < 0) return would_wait();
    sent += static_cast<size_t>(went);
    moved = std::chrono::steady_clock::now();
  }
  head.clear();
  body.reset();
  sent = 0;
  return !closing;
}

}  // namespace brigade::dist
