// Splits the backends into runs, and makes the groups of a run on each of its ranks.
#include <brigade/lab/bench/on_ranks.h>

#include <brigade/core/error.h>

#include <nlohmann/json.hpp>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include <sched.h>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace brigade::lab::bench {
namespace {

using nlohmann::json;

// Long enough for a collective of a gigabyte on a busy machine.
constexpr std::chrono::seconds kTimeout(120);

// Runs on the launcher's ranks. "auto" is not a backend's name; the ranks know the real name once they have joined.
RanksRun run_with_launcher(const std::string& job, json arguments, const std::vector<std::string>& backends) {
  std::vector<std::string> names;
  for (const std::string& backend : backends)
    names.push_back(backend == "auto" ? joined_group(backend)->backend() : backend);
  arguments["backends"] = names;
  json answers = json::array();
  for (const std::string& text : run_joined(job, arguments.dump(), joined_group(backends.front())))
    answers.push_back(json::parse(text));
  return {names, std::move(answers)};
}

RanksRun run_once(const std::string& job, json arguments, const std::vector<std::string>& backends, int ranks) {
  arguments["backends"] = backends;
  const RankJobOutcome outcome = run_rank_job(job, arguments.dump(), backends.front(), ranks, kTimeout);
  require_ok(outcome);
  json answers = json::array();
  for (const RankResult& result : outcome.ranks)
    answers.push_back(json::parse(result.text));
  return {backends, std::move(answers)};
}

}  // namespace

RanksRun::RanksRun(std::vector<std::string> backends, json ranks)
    : backends_(std::move(backends)), ranks_(std::make_unique<json>(std::move(ranks))) {}
RanksRun::RanksRun(RanksRun&&) noexcept = default;
RanksRun::~RanksRun() = default;

const json& RanksRun::rank(size_t r) const { return ranks_->at(r); }

Samples RanksRun::samples(size_t row, const char* field) const {
  Samples all;
  for (const json& answer : *ranks_)
    all.push_back(answer.at(row).at(field).get<std::vector<double>>());
  return all;
}

std::vector<RanksRun> run_on_ranks(const std::string& job, const json& arguments,
                                   const std::vector<std::string>& backends, int ranks) {
  std::vector<RanksRun> runs;
  if (const int joined = joined_ranks(); joined > 0) {
    if (ranks != joined)
      throw ValueError("this benchmark needs {} ranks, and a launcher has started {}, which are its ranks", ranks,
                       joined);
    runs.push_back(run_with_launcher(job, arguments, backends));
    return runs;
  }
  std::vector<std::string> processes;
  bool threads = false;
  for (const std::string& backend : backends) {
    threads = threads || backend == "threads";
    if (backend != "threads") processes.push_back(backend);
  }
  if (!processes.empty()) runs.push_back(run_once(job, arguments, processes, ranks));
  if (threads) runs.push_back(run_once(job, arguments, {"threads"}, ranks));
  return runs;
}

std::map<std::string, dist::ProcessGroupPtr> groups_of(const dist::ProcessGroupPtr& group, const json& arguments) {
  std::map<std::string, dist::ProcessGroupPtr> groups;
  for (const std::string backend : arguments.at("backends")) {
    if (groups.empty()) {
      groups[backend] = group;
    } else if (has_joined()) {
      groups[backend] = joined_group(backend);
    } else if (!groups.contains(backend)) {
      dist::InitOptions beside;
      beside.backend = backend;
      beside.timeout = group->timeout();
      groups[backend] = dist::init_process_group(beside);
    }
  }
  return groups;
}

// --- Chooses the core and configures the kernel's affinity and OpenMP.

void pin_rank(int rank) {
  // The affinity of the process, since this thread may have been pinned already.
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
    throw DistError("cannot ask for the cores of this thread: {}", std::strerror(errno));
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cores[static_cast<size_t>(rank) % cores.size()], &one);
  if (sched_setaffinity(0, sizeof(one), &one) != 0)
    throw DistError("cannot pin rank {} to a core: {}", rank, std::strerror(errno));
#ifdef _OPENMP
  omp_set_num_threads(1);
#endif
}

}  // namespace brigade::lab::bench
