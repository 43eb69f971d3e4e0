// Chooses the network interface, and hands Gloo the connections to all peers.
#include <brigade/dist/groups/gloo/connect.h>

#include <brigade/core/error.h>
#include <brigade/dist/rendezvous/store.h>

#include <gloo/transport/tcp/device.h>

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <mutex>

#include <netdb.h>
#include <sys/socket.h>

namespace brigade::dist {
namespace {

// A lost peer must be an error of the call, not a SIGPIPE (Gloo writes without MSG_NOSIGNAL), unless the program has
// its own handler.
void ignore_broken_pipes() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction current {};
    if (sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
  });
}

std::string in_numbers(const gloo::transport::tcp::attr& here) {
  char text[NI_MAXHOST] = {};
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&here.ai_addr), static_cast<socklen_t>(here.ai_addrlen), text,
                  sizeof text, nullptr, 0, NI_NUMERICHOST) != 0)
    throw UnreachablePeer("the interface has no address");
  return text;
}

}  // namespace

std::shared_ptr<JoinedContext> connect_gloo(const std::shared_ptr<Store>& store, const std::string& prefix, int rank,
                                            int size, std::chrono::milliseconds timeout, const RankNames& names) {
  ignore_broken_pipes();
  gloo::transport::tcp::attr attributes;
  const char* interface = std::getenv("BRIGADE_SOCKET_IFNAME");
  if (!interface) interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface) {
    attributes.iface = interface;
  } else {
    // The interface that reaches the store also reaches the other ranks. A host's own name often resolves to an address
    // that only the host itself can reach.
    const std::string address = store->local_address();
    attributes.hostname = address.empty() ? "127.0.0.1" : address;
  }
  try {
    const gloo::transport::tcp::attr here = gloo::transport::tcp::CreateDeviceAttr(attributes);
    return std::make_shared<JoinedContext>(
        rank, connect_mesh(*store, prefix, in_numbers(here), rank, size, timeout, names), timeout);
  } catch (const DistError&) {
    throw;
  } catch (const std::exception& error) {  // Gloo throws several types
    throw DistError(
        "gloo: rank {} cannot connect to its peers from {}: {}; BRIGADE_SOCKET_IFNAME names the interface on which "
        "the other hosts can reach this one",
        names(rank), interface ? fmt::format("interface {}", interface) : attributes.hostname, error.what());
  }
}

}  // namespace brigade::dist
