// Resolves a name on a separate thread, which is abandoned when it takes too long.
#include <brigade/dist/rendezvous/store/socket.h>

#include <brigade/core/error.h>

#include <future>
#include <thread>
#include <utility>

namespace brigade::dist {
namespace {

struct Found {
  int error = 0;
  Addresses addresses{nullptr, &freeaddrinfo};
};

Found ask(const std::string& host, int port, int flags, Resolver resolver) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* first = nullptr;
  Found found;
  found.error = resolver(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &first);
  if (found.error == 0) found.addresses.reset(first);
  return found;
}

}  // namespace

Addresses resolve(const std::string& host, int port, bool passive, Deadline deadline, Resolver resolver) {
  const int flags = passive ? AI_PASSIVE : 0;
  if (Found numeric = ask(host, port, flags | AI_NUMERICHOST, &getaddrinfo); numeric.error == 0)
    return std::move(numeric.addresses);
  const auto begin = std::chrono::steady_clock::now();
  std::promise<Found> promise;
  std::future<Found> future = promise.get_future();
  std::thread([host, port, flags, resolver, promise = std::move(promise)]() mutable {
    promise.set_value(ask(host, port, flags, resolver));
  }).detach();
  if (future.wait_until(deadline) != std::future_status::ready) {
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
    throw TimeoutError(
        "no name server has said within {} ms where host '{}' is; check the name (MASTER_ADDR) and the network, or give "
        "the address in numbers",
        waited.count(), host);
  }
  Found found = future.get();
  if (found.error != 0)
    throw DistError("cannot resolve host '{}': {}; check MASTER_ADDR", host, gai_strerror(found.error));
  return std::move(found.addresses);
}

}  // namespace brigade::dist
