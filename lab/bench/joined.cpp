// All groups share one store: under mpirun and srun rank 0 hosts it, at a port that can be opened only once.
#include <brigade/lab/bench/on_ranks.h>

#include <brigade/core/error.h>
#include <brigade/core/fnv.h>
#include <brigade/dist/groups/backends.h>
#include <brigade/dist/rendezvous/rendezvous.h>
#include <brigade/lab/rank_job.h>

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>

namespace brigade::lab::bench {
namespace {

// Long enough for a collective of a gigabyte on a busy machine.
constexpr std::chrono::seconds kTimeout(120);

struct JoinedJobGroups {
  dist::LaunchedRank launched;
  std::shared_ptr<dist::Store> store;
  std::map<std::string, dist::ProcessGroupPtr> groups;  // by requested backend name
};

std::unique_ptr<JoinedJobGroups>& kept() {
  static std::unique_ptr<JoinedJobGroups> all;
  return all;
}

JoinedJobGroups& meet() {
  std::unique_ptr<JoinedJobGroups>& all = kept();
  if (!all) {
    const dist::Variables variables = dist::launch_variables();
    const dist::LaunchedRank launched = dist::launched_rank(variables);
    all = std::make_unique<JoinedJobGroups>(
        JoinedJobGroups{launched, dist::open_store("env://", variables, launched, kTimeout), {}});
  }
  return *all;
}

dist::ProcessGroupPtr make_group(const JoinedJobGroups& all, const std::string& backend) {
  const int rank = all.launched.rank;
  const int size = all.launched.world_size;
  // A restarted run uses the same store.
  const char* generation = std::getenv("TORCHELASTIC_RESTART_COUNT");
  const std::string prefix =
      fmt::format("bench{:x}.{}.{}", fnv(all.launched.job), generation ? generation : "", backend);
  const dist::HostLayout layout = dist::exchange_hosts(*all.store, rank, size, kTimeout, prefix);
  const bool fastest = backend == "auto";
  const dist::Backend& kind = dist::find_backend(fastest ? dist::fastest_backend(layout, size) : backend);
  if (!kind.missing.empty()) throw DistError(kind.missing);
  dist::ProcessGroupPtr group = kind.make(all.store, rank, size, kTimeout, prefix);
  const bool has_devices = fastest && dist::find_backend("nccl").missing.empty();
  return has_devices ? dist::make_nccl_or_staged_group(std::move(group)) : group;
}

}  // namespace

int joined_ranks() {
  const int launched = launched_ranks();
  return launched > 1 ? launched : 0;
}

bool are_on_one_host() { return joined_ranks() == 0 || dist::launched_rank(dist::launch_variables()).on_one_host(); }

bool is_speaker() { return joined_ranks() == 0 || dist::launched_rank(dist::launch_variables()).rank == 0; }

dist::ProcessGroupPtr joined_group(const std::string& backend) {
  if (backend == "threads")
    throw ValueError(
        "the backend threads is for ranks of one process, not of a launcher; leave out --backends, or name {}",
        dist::backend_names());
  JoinedJobGroups& all = meet();
  dist::ProcessGroupPtr& group = all.groups[backend];
  if (!group) group = make_group(all, backend);
  return group;
}

std::vector<std::string> run_joined(const std::string& job, const std::string& arguments,
                                    const dist::ProcessGroupPtr& group) {
  const JoinedJob joined{run_rank_job_here(job, group, arguments), group->rank(), group->size(), group->backend()};
  require_ok(joined);
  return group->all_gather_text(joined.result.text, "results of a benchmark");
}

bool has_joined() { return kept() != nullptr; }

void leave_joined_groups() { kept().reset(); }

}  // namespace brigade::lab::bench
