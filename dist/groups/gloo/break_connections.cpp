// Finds Gloo's sockets among the open descriptors by their addresses, and shuts them down.
#include <brigade/dist/groups/gloo/break_connections.h>

#include <gloo/transport/address.h>
#include <gloo/transport/pair.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <sys/socket.h>

namespace brigade::dist {

namespace {

// Connected sockets, each with the address of its own end as the system writes it, which is how
// Gloo's begin.
std::vector<std::pair<int, std::vector<char>>> connected_sockets() {
  std::vector<std::pair<int, std::vector<char>>> sockets;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const int fd = std::atoi(entry.path().filename().c_str());
    sockaddr_storage peer{};
    sockaddr_storage own{};
    socklen_t peer_size = sizeof peer;
    socklen_t size = sizeof own;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) continue;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) continue;
    if (own.ss_family != AF_INET && own.ss_family != AF_INET6) continue;
    const char* bytes = reinterpret_cast<const char*>(&own);
    sockets.emplace_back(fd, std::vector<char>(bytes, bytes + size));
  }
  return sockets;
}

}  // namespace

void break_connections(gloo::Context& context) {
  const auto sockets = connected_sockets();
  for (int rank = 0; rank < context.size; ++rank) {
    if (rank == context.rank) continue;
    gloo::transport::Pair* pair = context.getPair(rank).get();
    if (!pair) continue;
    const std::vector<char> address = pair->address().bytes();
    bool shut = false;
    for (const auto& [fd, own] : sockets) {
      if (own.size() <= address.size() && std::memcmp(own.data(), address.data(), own.size()) == 0)
        shut = shutdown(fd, SHUT_RDWR) == 0 || shut;
    }
    if (!shut) pair->close();
  }
}

}  // namespace brigade::dist
