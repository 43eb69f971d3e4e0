// From the environment of a launcher to a process group.
#include <brigade/core/fnv.h>
#include <brigade/core/warning.h>
#include <brigade/dist/groups/backends.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/shm/control.h>
#include <brigade/dist/meeting/rank_hosts.h>
#include <brigade/dist/meeting/rendezvous.h>

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>

namespace brigade::dist {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
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

  const std::shared_ptr<Store> store = open_store(options.init_method, variables, launched, options.timeout);
  const std::string generation = variable("TORCHELASTIC_RESTART_COUNT");
  // Several groups may be made in one run: each rank counts its own calls.
  static std::atomic<int> calls{0};
  // With the name of the run: should two runs derive the same port, they do not take each other's
  // ranks for their own.
  const std::string run = launched.job.empty() ? "" : fmt::format("run{:x}.", fnv(launched.job));
  const std::string prefix = fmt::format("{}group{}.{}", run, generation, calls.fetch_add(1));
  if (store->add(fmt::format("{}/rank/{}", prefix, rank), 1) > 1) {
    throw DistError(
        "rendezvous: rank {} announced itself twice; two processes have the same RANK, or two jobs use the same port "
        "(BRIGADE_RUN_ID, the same on the ranks of a job, tells jobs apart)",
        rank);
  }
  // Also for those that need not know: others may have asked for "auto".
  store->set(fmt::format("{}/host/{}", prefix, rank), host_identity());
  if (backend == "auto") backend = choose_backend(exchange_hosts(*store, rank, size, options.timeout, prefix), size);
  if (rank > 0) print_warnings(false);
  return find_backend(backend).make(store, rank, size, options.timeout, prefix);
}

}  // namespace brigade::dist
