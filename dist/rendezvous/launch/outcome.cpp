// Describes the end of a job.
#include <brigade/dist/rendezvous/launch/outcome.h>

#include <brigade/dist/errors/verdict.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include <sys/wait.h>

namespace brigade::dist {

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
