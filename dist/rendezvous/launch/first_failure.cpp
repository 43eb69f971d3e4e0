// Orders the ranks' errors: own errors before consequences, the earliest first.
#include <brigade/dist/rendezvous/launch/first_failure.h>

#include <algorithm>
#include <csignal>
#include <tuple>

namespace brigade::dist {

namespace {

// Whether a signal killed the rank that cannot be a consequence of another rank's error. SIGABRT can be one: an
// uncaught exception.
bool died_by_signal(const RankEnd& end) { return end.signal != 0 && end.signal != SIGABRT && !end.was_ended; }

bool is_consequence(const RankEnd& end) {
  return !died_by_signal(end) && (end.error ? end.error->consequence : end.was_ended);
}

int64_t time_of(const RankEnd& end) { return end.error && !died_by_signal(end) ? end.error->time_ns : end.time_ns; }

}  // namespace

FirstFailure find_first_failure(std::span<const RankEnd> ranks) {
  const RankEnd* first = nullptr;
  const auto order = [](const RankEnd& end) {
    // A rank that was asked to end and left no error file comes last.
    return std::tuple(is_consequence(end), !end.error && end.was_ended, time_of(end));
  };
  for (const RankEnd& end : ranks) {
    if (end.exit_code != 0 && (!first || order(end) < order(*first))) first = &end;
  }
  if (!first) return {};
  FirstFailure result{.rank = first->rank, .exit_code = first->exit_code};
  if (!is_consequence(*first) || !first->error) return result;
  result.because_of = first->error->because_of;
  // A named rank may itself have given up because of another rank: follows the names to a rank that did not.
  std::vector<int> named = result.because_of;
  for (size_t at = 0; at < named.size(); ++at) {
    const auto end =
        std::find_if(ranks.begin(), ranks.end(), [&](const RankEnd& each) { return each.rank == named[at]; });
    if (end == ranks.end()) continue;
    if (end->was_ended && !end->error) return {.rank = end->rank, .exit_code = first->exit_code, .awaited = true};
    if (end->exit_code == 0 && !end->was_ended) return {.rank = end->rank, .exit_code = first->exit_code, .left = true};
    if (!end->error || !is_consequence(*end)) continue;
    for (const int rank : end->error->because_of) {
      if (std::find(named.begin(), named.end(), rank) == named.end()) named.push_back(rank);
    }
  }
  return result;
}

}  // namespace brigade::dist
