// Polls the store for the awaited key, for reports of the launchers, and for the waits of other ranks.
#include <brigade/dist/rendezvous/rendezvous.h>

#include <brigade/dist/errors/error_file.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace brigade::dist {
namespace {

using Clock = std::chrono::steady_clock;

// The attempt of the launcher that hosts the store; -1 under other launchers.
int own_attempt() {
  const char* const hosted = std::getenv("BRIGADE_AGENT_STORE");
  const char* const attempt = std::getenv("TORCHELASTIC_RESTART_COUNT");
  return hosted && *hosted && attempt && *attempt ? std::atoi(attempt) : -1;
}

}  // namespace

std::string attempt_over_key(int attempt) { return fmt::format("launch/attempt/{}/over", attempt); }
std::string rank_ended_key(int attempt, int rank) { return fmt::format("launch/attempt/{}/ended/{}", attempt, rank); }

AwaitedRanks::~AwaitedRanks() {
  if (said_ >= 0 && !gave_up_) say_for_whom(-1);
}

// The same key in all rendezvous of a group, including those of its subgroups.
std::string AwaitedRanks::waits_key(int global_rank) const {
  return fmt::format("{}/waits/{}", prefix_.substr(0, prefix_.find('/')), global_rank);
}

void AwaitedRanks::say_for_whom(int global_rank) noexcept try {
  if (said_ == global_rank) return;
  store_.set(waits_key(names_(rank_).global), std::to_string(global_rank));
  said_ = global_rank;
} catch (const std::exception&) {
  // Only used for the errors of other ranks.
}

std::string AwaitedRanks::get(const std::string& key, int other) {
  const auto deadline = Clock::now() + timeout_;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    try {
      return store_.get(key, std::clamp(left, std::chrono::milliseconds(0), kBetweenLooks));
    } catch (const TimeoutError&) {
      if (left.count() <= 0) did_not_come(other);
    }
    try {
      look(other);
    } catch (const PeerError&) {
      // The rank may have set the value just before it ended.
      if (!store_.check(key)) throw;
      gave_up_ = false;
    }
  }
}

void AwaitedRanks::look(int other) {
  say_for_whom(names_(other).global);
  const int attempt = own_attempt();
  if (attempt < 0) return;
  const std::string ended = rank_ended_key(attempt, names_(other).global);
  if (store_.check(ended)) {
    const int fault = at_fault(other);
    const std::string text = fmt::format(
        "rendezvous: rank {} stopped waiting for rank {}: the process of rank {} {} before it joined{}; "
        "check the output of {}",
        names_(rank_), names_(other), names_(other).number, store_.get(ended, timeout_), because_of(other, fault),
        global_name(fault));
    leave_consequence(text, {fault});
    gave_up_ = true;
    throw PeerError(text);
  }
  if (store_.check(attempt_over_key(attempt))) {
    const std::string why = store_.get(attempt_over_key(attempt), timeout_);
    const std::string text =
        fmt::format("rendezvous: rank {} stopped waiting for rank {} because attempt {} of the job has ended: {}",
                    names_(rank_), names_(other), attempt, why.substr(std::min(why.size(), why.find('\n') + 1)));
    leave_consequence(text, {});
    gave_up_ = true;
    throw PeerError(text);
  }
}

void AwaitedRanks::did_not_come(int other, const std::string& remark) {
  const int fault = at_fault(other);
  const std::string text = fmt::format(
      "rendezvous: rank {} waited {} ms for rank {}{}, which did not join{}{}", names_(rank_), timeout_.count(),
      names_(other), names_.own() ? fmt::format(" of {}", size_) : "", because_of(other, fault), remark);
  leave_consequence(text, {fault});
  gave_up_ = true;
  throw TimeoutError(text);
}

int AwaitedRanks::at_fault(int other) {
  int fault = names_(other).global;
  try {
    // Follows the published waits; visits no rank twice.
    for (std::vector<int> seen{names_(rank_).global, fault}; store_.check(waits_key(fault));) {
      const int next = std::atoi(store_.get(waits_key(fault), timeout_).c_str());
      if (next < 0 || std::find(seen.begin(), seen.end(), next) != seen.end()) break;
      seen.push_back(fault = next);
    }
  } catch (const DistError&) {
    // The store is gone.
  }
  return fault;
}

std::string AwaitedRanks::because_of(int other, int fault) const {
  if (fault == names_(other).global) return "";
  return fmt::format("; rank {} was itself waiting for {}", names_(other).number, global_name(fault));
}

std::string AwaitedRanks::global_name(int rank) const {
  return fmt::format("{}rank {}", names_.of_subgroup() ? "global " : "", rank);
}

}  // namespace brigade::dist
