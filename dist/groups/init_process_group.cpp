// Makes a process group from the environment of a launcher.
#include <brigade/core/detail/files.h>
#include <brigade/core/fnv.h>
#include <brigade/core/warning.h>
#include <brigade/dist/groups/backends.h>
#include <brigade/dist/groups/process_end.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/rendezvous/rendezvous.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

namespace brigade::dist {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

struct Timeouts {
  std::chrono::milliseconds collective;
  std::chrono::milliseconds meeting;
};

Timeouts timeouts_of(const InitOptions& options, const Variables& variables) {
  const auto checked = [](std::chrono::milliseconds value, const char* what) {
    if (value.count() < 1 || value > kLongestTimeout)
      throw ValueError("init_process_group: expected a {} from 1 ms to 365 days, got {} ms", what, value.count());
    return value;
  };
  // Reads both variables even when the options override them, so that a malformed one is always reported.
  const auto wanted = timeout_variable(variables, "BRIGADE_TIMEOUT");
  const auto wanted_to_meet = timeout_variable(variables, "BRIGADE_MEETING_TIMEOUT");
  const auto collective = options.timeout ? options.timeout : wanted;
  auto meeting = options.meeting_timeout ? options.meeting_timeout : options.timeout;
  if (!meeting) meeting = wanted_to_meet;
  return {checked(collective.value_or(std::chrono::seconds(30)), "timeout"),
          checked(meeting.value_or(std::chrono::minutes(5)), "meeting_timeout")};
}

// Whether this is a world of one: "env://?alone" and no launcher.
bool is_alone(const InitOptions& options, const Variables& variables) {
  return options.init_method == "env://?alone" && options.rank < 0 && options.world_size < 0 &&
         !find_launched_rank(variables);
}

// Rank and world size from the options, otherwise from the launcher.
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

// Checked before any rank waits.
void check_backend(const std::string& name) {
  const std::string& missing = find_backend(name).missing;
  if (!missing.empty()) throw DistError(missing);
}

// `wanted`: indexed by rank. Ranks with different backends would wait for each other forever at different places.
void check_same_backend(const std::vector<std::string>& wanted) {
  const auto other = std::ranges::find_if(wanted, [&](const std::string& each) { return each != wanted.front(); });
  if (other == wanted.end()) return;
  throw DistError(
      "rendezvous: backends differ: rank 0 asks for {}, rank {} for {}; give all ranks the same (InitOptions::backend, "
      "--backend)",
      wanted.front(), other - wanted.begin(), *other);
}

}  // namespace

ProcessGroupPtr init_process_group(const InitOptions& options) {
  brigade::detail::fill_standard_descriptors();
  check_thread_count();
  fail_early_exits();
  const Variables variables = launch_variables();
  const bool alone = is_alone(options, variables);
  const LaunchedRank launched = alone ? LaunchedRank{.launcher = "no launcher"} : rank_of(options, variables);
  const int rank = launched.rank;
  const int size = launched.world_size;
  const Timeouts timeouts = timeouts_of(options, variables);
  std::string backend = options.backend;
  if (backend != "auto") check_backend(backend);

  const std::string method = alone                                   ? "alone://"
                             : options.init_method == "env://?alone" ? "env://"
                                                                     : options.init_method;
  const std::shared_ptr<Store> store = open_store(method, variables, launched, timeouts.meeting);
  const std::string generation = variable("TORCHELASTIC_RESTART_COUNT");
  // Several groups may be made in one run: each rank counts its own calls.
  static std::atomic<int> calls{0};
  // The prefix contains the name of the run: two runs that derive the same port do not mix up their ranks.
  const std::string run = launched.job.empty() ? "" : fmt::format("run{:x}.", fnv(launched.job));
  const std::string prefix = fmt::format("{}group{}.{}", run, generation, calls.fetch_add(1));
  if (store->add(fmt::format("{}/rank/{}", prefix, rank), 1) > 1) {
    throw DistError(
        "rendezvous: rank {} announced itself twice; two processes have the same RANK, or two jobs use the same port "
        "(BRIGADE_RUN_ID, the same on the ranks of a job, tells jobs apart)",
        rank);
  }
  // Also when the backend is given: it ensures that all ranks have arrived before the shorter timeouts apply.
  std::vector<std::string> wanted(1, backend);
  const HostLayout layout = exchange_hosts(*store, rank, size, timeouts.meeting, prefix, {}, &wanted);
  check_same_backend(wanted);
  const bool is_auto = backend == "auto";
  if (is_auto) backend = fastest_backend(layout, size);
  if (rank > 0) hold_warnings(rank);
  ProcessGroupPtr group = find_backend(backend).make(store, rank, size, timeouts.collective, prefix);
  // A program that uses no device tensor never makes the choice, and does not load NCCL.
  const bool has_devices = is_auto && find_backend("nccl").missing.empty();
  return has_devices ? make_nccl_or_staged_group(std::move(group)) : group;
}

}  // namespace brigade::dist
