// Compares what the ranks left: own errors before consequences, the earliest first.
#include <brigade/dist/meeting/launch/first_failure.h>

#include <algorithm>
#include <csignal>
#include <tuple>

namespace brigade::dist {

namespace {

// What an error of another rank cannot do to a rank: SIGABRT is an uncaught exception.
bool died_by_signal(const RankEnd& end) { return end.signal != 0 && end.signal != SIGABRT && !end.told_to_end; }

bool is_consequence(const RankEnd& end) {
  return !died_by_signal(end) && (end.error ? end.error->consequence : end.told_to_end);
}

int64_t time_of(const RankEnd& end) { return end.error && !died_by_signal(end) ? end.error->time_ns : end.time_ns; }

}  // namespace

FirstFailure find_first_failure(std::span<const RankEnd> ranks) {
  const RankEnd* first = nullptr;
  const auto order = [](const RankEnd& end) {
    // Whoever has left no word and was told to end comes last.
    return std::tuple(is_consequence(end), !end.error && end.told_to_end, time_of(end));
  };
  for (const RankEnd& end : ranks) {
    if (end.exit_code != 0 && (!first || order(end) < order(*first))) first = &end;
  }
  if (!first) return {};
  FirstFailure result{.rank = first->rank, .exit_code = first->exit_code};
  if (!is_consequence(*first) || !first->error) return result;
  result.because_of = first->error->because_of;
  for (const RankEnd& end : ranks) {
    const bool named =
        std::find(result.because_of.begin(), result.because_of.end(), end.rank) != result.because_of.end();
    if (!named) continue;
    if (end.told_to_end && !end.error) return {.rank = end.rank, .exit_code = first->exit_code, .awaited = true};
    if (end.exit_code == 0 && !end.told_to_end) return {.rank = end.rank, .exit_code = first->exit_code, .left = true};
  }
  return result;
}

}  // namespace brigade::dist
