// Orders the ranks' errors: own errors before consequences, the earliest first; describes the end of a job.
#include <brigade/dist/rendezvous/launch/outcome.h>

#include <brigade/dist/errors/verdict.h>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <tuple>

#include <sys/wait.h>

namespace brigade::dist {

// --- Orders the ranks' errors: own errors before consequences, the earliest first.

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

// --- Describes the end of a job.

namespace {

std::string how_it_failed(const RankOutcome& rank, const FirstFailure& first, const Overdue& overdue) {
  if (!overdue.ranks.empty())
    return fmt::format("{} still running {:g} s after the others had ended (--exit-timeout)",
                       ranks_in_words(overdue.ranks) + (overdue.ranks.size() > 1 ? " were" : " was"),
                       std::chrono::duration<double>(overdue.exit_timeout).count());
  const std::string how = how_it_ended(rank);
  if (first.awaited)
    return fmt::format("rank {} was still running when other ranks stopped waiting for it, and {}", rank.rank, how);
  if (first.left) return fmt::format("rank {} {} first, while other ranks still needed it", rank.rank, how);
  return fmt::format("rank {} {} first", rank.rank, how);
}

}  // namespace

RankOutcome rank_outcome(int rank, int status) {
  RankOutcome result;
  result.rank = rank;
  result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  result.exit_code = result.signal ? 128 + result.signal : WEXITSTATUS(status);
  return result;
}

std::string how_it_ended(const RankOutcome& rank) {
  return rank.signal ? fmt::format("was ended by signal {} ({})", rank.signal, strsignal(rank.signal))
                     : fmt::format("exited with status {}", rank.exit_code);
}

std::string summary_of(const RankOutcome& rank, const FirstFailure& first, const Overdue& overdue) {
  std::string summary = how_it_failed(rank, first, overdue);
  if (!first.because_of.empty()) summary += ", because of " + ranks_in_words(first.because_of);
  if (rank.last_words.empty()) return summary + "; it wrote nothing to standard error";
  return summary + "; its last words:\n" + rank.last_words;
}

void blame_signal(LaunchOutcome& outcome, int signal, bool failed_before) {
  outcome.signal = signal;
  const auto first = std::find_if(outcome.ranks.begin(), outcome.ranks.end(),
                                  [](const RankOutcome& rank) { return rank.first_failure; });
  if (failed_before) return;
  if (first == outcome.ranks.end() || first->signal != 0) outcome.exit_code = 128 + signal;
  if (first != outcome.ranks.end()) first->first_failure = false;
  outcome.summary = fmt::format("ended by signal {} ({})", signal, strsignal(signal));
}

}  // namespace brigade::dist
