// Opens the store of each init_method; rank 0 hosts the server unless a launcher does.
#include <brigade/dist/rendezvous/rendezvous.h>
#include <brigade/dist/rendezvous/secret.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

namespace brigade::dist {
namespace {

// A store that rank 0 hosts; on rank 0 it owns the server.
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
  int host_rank() const override { return 0; }

 private:
  std::unique_ptr<TcpStoreServer> server_;
  std::shared_ptr<Store> store_;
};

// The process that hosts the server of a TCP store.
enum class Host { Launcher, OtherRank, ThisRank };

std::shared_ptr<Store> open_tcp(const std::string& address, int port, Host host, std::chrono::milliseconds timeout,
                                const StoreJob& job) {
  if (host == Host::Launcher) return connect_tcp_store(address, port, timeout, job);
  auto server = host == Host::ThisRank ? std::make_unique<TcpStoreServer>(address, port, job) : nullptr;
  auto store = connect_tcp_store(address, server ? server->port() : port, timeout, job);
  return std::make_shared<HostedStore>(std::move(server), std::move(store));
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// brigade run, the user and torchrun name a run by an environment variable; other launchers have their own names.
StoreJob job_of(const LaunchedRank& launched) {
  StoreJob job{variable("BRIGADE_RUN_ID"), launched.world_size, fmt::format("rank {}", launched.rank), job_secret()};
  if (!variable("BRIGADE_AGENT_STORE").empty()) return job;  // set by the launcher
  if (job.run.empty()) job.run = variable("TORCHELASTIC_RUN_ID");
  if (job.run.empty()) job.run = launched.job;
  return job;
}

}  // namespace

std::shared_ptr<Store> open_store(const std::string& method, const Variables& variables, const LaunchedRank& launched,
                                  std::chrono::milliseconds timeout) {
  const int rank = launched.rank;
  if (method.starts_with("file://")) return open_file_store(method.substr(7), launched.world_size, timeout);
  if (method.starts_with("tcp://")) {
    const std::string place = method.substr(6);
    const size_t host = std::min(place.rfind(':'), place.size());
    int port = 0;
    const char* const last = place.data() + place.size();
    const auto [end, error] = std::from_chars(std::min(place.data() + host + 1, last), last, port);
    if (host == 0 || error != std::errc() || end != last || port < 1 || port > 65535)
      throw DistError("rendezvous: expected tcp://HOST:PORT with a port from 1 to 65535, got '{}'", method);
    return open_tcp(place.substr(0, host), port, rank == 0 ? Host::ThisRank : Host::OtherRank, timeout,
                    job_of(launched));
  }
  if (method == "alone://") return open_tcp("127.0.0.1", 0, Host::ThisRank, timeout, job_of(launched));
  if (method != "env://")
    throw DistError("rendezvous: expected env://, env://?alone, tcp://HOST:PORT or file:///PATH, got '{}'", method);
  const MeetingPlace place = find_meeting_place(variables, launched);
  const Host host = place.hosted_by_launcher ? Host::Launcher : rank == 0 ? Host::ThisRank : Host::OtherRank;
  return open_tcp(place.address, place.port, host, timeout, job_of(launched));
}

}  // namespace brigade::dist
