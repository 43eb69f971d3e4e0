// Chooses the network interface, and lets Gloo meet through our store.
#include <brigade/dist/groups/gloo/connect.h>

#include <brigade/core/error.h>
#include <brigade/dist/meeting/store.h>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

namespace brigade::dist {

namespace {

class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(std::shared_ptr<dist::Store> store, std::string prefix, std::chrono::milliseconds timeout)
      : store_(std::move(store)), prefix_(std::move(prefix)), timeout_(timeout) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_->set(prefix_ + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_->get(prefix_ + key, timeout_);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    for (const std::string& key : keys)
      store_->get(prefix_ + key, timeout);
  }

 private:
  std::shared_ptr<dist::Store> store_;
  std::string prefix_;
  std::chrono::milliseconds timeout_;
};

// A peer that goes away must be an error of the call (Gloo writes without MSG_NOSIGNAL), unless the
// program has a handler of its own.
void ignore_broken_pipes() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction current {};
    if (sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
  });
}

}  // namespace

std::shared_ptr<gloo::Context> connect_gloo(const std::shared_ptr<Store>& store, const std::string& prefix, int rank,
                                            int size, std::chrono::milliseconds timeout, const RankNames& names) {
  ignore_broken_pipes();
  gloo::transport::tcp::attr attributes;
  const char* interface = std::getenv("BRIGADE_SOCKET_IFNAME");
  if (!interface) interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface) {
    attributes.iface = interface;
  } else {
    // The way to the store is a way to the other ranks. A host's own name often resolves to an
    // address that only the host itself can reach.
    const std::string address = store->local_address();
    attributes.hostname = address.empty() ? "127.0.0.1" : address;
  }
  try {
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    // For a connection Gloo waits five times as long as it is told.
    context->setTimeout(std::max(timeout / 5, std::chrono::milliseconds(1)));
    GlooStore meeting(store, prefix + "/gloo/", timeout);
    context->connectFullMesh(meeting, device);
    context->setTimeout(timeout);
    return context;
  } catch (const TimeoutError& error) {
    throw TimeoutError("rendezvous: rank {} waited {} ms for its peers: {}", names(rank), timeout.count(),
                       error.what());
  } catch (const DistError&) {
    throw;
  } catch (const std::exception& error) {  // Gloo has several kinds
    throw DistError(
        "gloo: rank {} cannot connect to its peers from {}: {}; BRIGADE_SOCKET_IFNAME names the interface on which "
        "the other hosts can reach this one",
        names(rank), interface ? fmt::format("interface {}", interface) : attributes.hostname, error.what());
  }
}

}  // namespace brigade::dist
