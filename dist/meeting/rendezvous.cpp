// Opens the store of each way to meet; rank 0 hosts its server where no launcher does.
#include <brigade/dist/meeting/rendezvous.h>

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <utility>

namespace brigade::dist {

namespace {

// A store that keeps the server which rank 0 hosts.
class HostedStore final : public Store {
 public:
  HostedStore(std::unique_ptr<TcpStoreServer> server, std::shared_ptr<Store> store)
      : server_(std::move(server)), store_(std::move(store)) {}
  void set(const std::string& key, const std::string& value) override { store_->set(key, value); }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    return store_->get(key, timeout);
  }
  int64_t add(const std::string& key, int64_t amount) override { return store_->add(key, amount); }
  bool check(const std::string& key) override { return store_->check(key); }
  std::string local_address() const override { return store_->local_address(); }

 private:
  std::unique_ptr<TcpStoreServer> server_;
  std::shared_ptr<Store> store_;
};

std::shared_ptr<Store> open_tcp(const std::string& host, int port, bool host_it, std::chrono::milliseconds timeout,
                                const StoreJob& job) {
  if (!host_it) return connect_tcp_store(host, port, timeout, job);
  auto server = std::make_unique<TcpStoreServer>(host, port, job);
  auto store = connect_tcp_store(host, server->port(), timeout, job);
  return std::make_shared<HostedStore>(std::move(server), std::move(store));
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// brigade run, the user and torchrun name a run by a variable; other launchers have a name of their
// own.
StoreJob job_of(const LaunchedRank& launched) {
  StoreJob job{variable("BRIGADE_RUN_ID"), launched.world_size, fmt::format("rank {}", launched.rank)};
  if (!variable("BRIGADE_AGENT_STORE").empty()) return job;  // the launcher's own word
  if (job.run.empty()) job.run = variable("TORCHELASTIC_RUN_ID");
  if (job.run.empty()) job.run = launched.job;
  return job;
}

}  // namespace

std::shared_ptr<Store> open_store(const std::string& method, const Variables& variables, const LaunchedRank& launched,
                                  std::chrono::milliseconds timeout) {
  const int rank = launched.rank;
  if (method.starts_with("file://")) return open_file_store(method.substr(7), launched.world_size);
  if (method.starts_with("tcp://")) {
    const size_t colon = method.rfind(':');
    int port = 0;
    const char* const last = method.data() + method.size();
    const auto [end, error] = std::from_chars(method.data() + colon + 1, last, port);
    if (colon <= 5 || error != std::errc() || end != last || port < 1 || port > 65535)
      throw DistError("rendezvous: expected tcp://HOST:PORT with a port from 1 to 65535, got '{}'", method);
    return open_tcp(method.substr(6, colon - 6), port, rank == 0, timeout, job_of(launched));
  }
  if (method != "env://")
    throw DistError("rendezvous: expected env://, tcp://HOST:PORT or file:///PATH, got '{}'", method);
  const MeetingPlace place = find_meeting_place(variables, launched);
  return open_tcp(place.address, place.port, rank == 0 && !place.hosted_by_launcher, timeout, job_of(launched));
}

}  // namespace brigade::dist
