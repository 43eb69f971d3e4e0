// From the environment of a launcher to a process group.
#include <brigade/core/warning.h>
#include <brigade/dist/groups/backends.h>
#include <brigade/dist/groups/fnv.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/shm/control.h>
#include <brigade/dist/meeting/launch/environment.h>
#include <brigade/dist/meeting/rank_hosts.h>
#include <brigade/dist/meeting/store.h>

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>

namespace brigade::dist {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

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

std::shared_ptr<Store> open_tcp(const std::string& host, int port, bool host_it, std::chrono::milliseconds timeout) {
  if (!host_it) return connect_tcp_store(host, port, timeout);
  auto server = std::make_unique<TcpStoreServer>(host, port);
  auto store = connect_tcp_store(host, server->port(), timeout);
  return std::make_shared<HostedStore>(std::move(server), std::move(store));
}

std::shared_ptr<Store> open_store(const InitOptions& options, const Variables& variables,
                                  const LaunchedRank& launched) {
  const std::string& method = options.init_method;
  const int rank = launched.rank;
  if (method.starts_with("file://")) return open_file_store(method.substr(7), launched.world_size);
  if (method.starts_with("tcp://")) {
    const size_t colon = method.rfind(':');
    const int port = colon > 5 ? std::atoi(method.c_str() + colon + 1) : 0;
    if (colon <= 5 || port < 1 || port > 65535)
      throw DistError("rendezvous: expected tcp://HOST:PORT, got '{}'", method);
    return open_tcp(method.substr(6, colon - 6), port, rank == 0, options.timeout);
  }
  if (method != "env://")
    throw DistError("rendezvous: expected env://, tcp://HOST:PORT or file:///PATH, got '{}'", method);
  const MeetingPlace place = find_meeting_place(variables, launched);
  return open_tcp(place.address, place.port, rank == 0 && !place.hosted_by_launcher, options.timeout);
}

// Rank and world size as the options say, else as the launcher does.
LaunchedRank rank_of(const InitOptions& options, const Variables& variables) {
  LaunchedRank result{.launcher = "the options of init_process_group"};
  if (options.rank < 0 || options.world_size < 0) result = launched_rank(variables);
  if (options.rank >= 0) result.rank = options.rank;
  if (options.world_size >= 0) result.world_size = options.world_size;
  if (result.world_size < 1 || result.rank >= result.world_size)
    throw DistError("rendezvous: rank {} of a world of {}: expected 0 <= rank < world size", result.rank,
                    result.world_size);
  return result;
}

// Before anybody waits.
void check_backend(const std::string& name) {
  const std::string& missing = find_backend(name).missing;
  if (!missing.empty()) throw DistError(missing);
}

// "auto": the fastest way between ranks that lie like this.
const char* choose_backend(const HostLayout& layout, int size) {
  const size_t most = layout.most_ranks();
  if (most > static_cast<size_t>(shm::kMaxRanks)) return "gloo";
  if (most == static_cast<size_t>(size)) return "shm";
  return most > 1 ? "hosts" : "gloo";
}

}  // namespace

ProcessGroupPtr init_process_group(const InitOptions& options) {
  const Variables variables = launch_variables();
  const LaunchedRank launched = rank_of(options, variables);
  const int rank = launched.rank;
  const int size = launched.world_size;
  std::string backend = options.backend;
  if (backend != "auto") check_backend(backend);

  const std::shared_ptr<Store> store = open_store(options, variables, launched);
  const std::string generation = variable("TORCHELASTIC_RESTART_COUNT");
  // Several groups may be made in one run: each rank counts its own calls.
  static std::atomic<int> calls{0};
  // With the name of the run: should two runs derive the same port, they do not take each other's
  // ranks for their own.
  const std::string run = launched.job.empty() ? "" : fmt::format("run{:x}.", fnv(launched.job));
  const std::string prefix = fmt::format("{}group{}.{}", run, generation, calls.fetch_add(1));
  if (store->add(fmt::format("{}/rank/{}", prefix, rank), 1) > 1) {
    throw DistError("rendezvous: rank {} announced itself twice; two processes have the same RANK", rank);
  }
  // Also for those that need not know: others may have asked for "auto".
  store->set(fmt::format("{}/host/{}", prefix, rank), host_identity());
  if (backend == "auto") backend = choose_backend(exchange_hosts(*store, rank, size, options.timeout, prefix), size);
  if (rank > 0) print_warnings(false);
  return find_backend(backend).make(store, rank, size, options.timeout, prefix);
}

}  // namespace brigade::dist
