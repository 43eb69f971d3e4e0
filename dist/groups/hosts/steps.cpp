// Waits for steps, and turns a failed step into an error of the collective, the same on all hosts.
#include <brigade/dist/groups/hosts/steps.h>

#include <brigade/core/clock.h>

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace brigade::dist {
namespace {

using Milliseconds = std::chrono::milliseconds;

// How often a wait between hosts checks whether it must end.
constexpr Milliseconds kLook(20);

int64_t in_ns(Milliseconds time) { return std::chrono::nanoseconds(time).count(); }

}  // namespace

Milliseconds patience_of_steps(Milliseconds timeout) { return std::min(timeout / 4, Milliseconds(2000)); }

HostSteps::HostSteps(std::shared_ptr<Store> store, int rank, Milliseconds timeout, const std::string& prefix,
                     const HostLayout& layout, RankNames names, std::function<void(const std::string&)> on_break)
    : rank_(rank),
      names_(std::move(names)),
      layout_(layout),
      on_break_(std::move(on_break)),
      cause_(store, prefix + "/hosts/cause", rank, timeout) {
  const std::vector<int>& mine = layout.hosts[static_cast<size_t>(layout.host)];
  inside_ = shm::make_group_of_processes(store, layout.local, static_cast<int>(mine.size()), timeout,
                                         fmt::format("{}/hosts/inside{}", prefix, layout.host), names_.step(mine));
  const int64_t period = in_ns(cause_.time_to_ask());  // each check queries the store
  inside_->end_waits_when(
      [this, period, next = now_ns() + period]() mutable {
        if (has_to_end()) return true;
        if (now_ns() < next) return false;
        next = now_ns() + period;
        return cause_.asked();
      },
      kLook);
  if (layout.hosts.size() == 1 || (!layout.even() && layout.local != 0)) return;
  std::vector<int> partners;
  for (const std::vector<int>& ranks : layout.hosts)
    partners.push_back(ranks[static_cast<size_t>(layout.local)]);
  for (const int partner : partners) {
    if (partner != rank) partners_ += fmt::format("{}{}", partners_.empty() ? "" : ", ", names_(partner));
  }
  between_ =
      make_gloo_chain(store, layout.host, static_cast<int>(partners.size()), timeout + patience_of_steps(timeout),
                      fmt::format("{}/hosts/between{}", prefix, layout.local), names_.step(partners));
  // A rank that fails in the first collective must not break connections that others are still making.
  between_->barrier({.description = "rendezvous"});
}

void HostSteps::inside(const HostsCall& call, const std::function<WorkPtr()>& post, bool last) {
  // The step between hosts also needs time to find the missing ranks, and to ask them.
  const Milliseconds extra =
      last ? 2 * patience_of_steps(call.timeout) + Milliseconds(2500) + cause_.time_to_answer() : Milliseconds(0);
  const auto until = HostsCall::Clock::now() + call.left() + extra;
  patience_ns_ = in_ns(extra);
  try {
    post()->wait(call.left() + extra);
  } catch (const CollectiveError& error) {
    fail(std::current_exception(), error);
  } catch (const DistError& error) {
    // A rank of this host that gave up because of another host has published the reason.
    fail_as_told(call, Milliseconds(0));
    if (dynamic_cast<const TimeoutError*>(&error)) {
      const bool in_time = HostsCall::Clock::now() < until && !has_to_end();
      fail(late_step_error(waiting_in(call), error,
                           in_time ? "gave up because another host timed out" : timed_out_in_words(call),
                           "inside its host"));
    }
    fail(std::current_exception(), error);
  }
}

void HostSteps::between(const HostsCall& call, const std::function<WorkPtr()>& post) {
  patience_ns_ = 0;
  try {
    const WorkPtr work = post();
    const auto until = HostsCall::Clock::now() + call.left() + patience_of_steps(call.timeout);
    while (!work->completes_within(kLook) && !has_to_end() && HostsCall::Clock::now() < until) {
    }
    work->wait(Milliseconds(1));
  } catch (const CollectiveError& error) {
    fail(std::current_exception(), error);
  } catch (const DistError& error) {
    // Gloo only reports that a connection is gone. Ranks on the host of the failed rank know more, and may need a
    // moment to report it; at a timeout they have had that time.
    const bool timed_out = dynamic_cast<const TimeoutError*>(&error) != nullptr;
    fail_as_told(call, Milliseconds(timed_out ? 20 : 500));
    if (timed_out) {
      // A missing rank may itself be waiting.
      if (const std::vector<int> ranks = ranks_to_ask(error); !ranks.empty()) {
        cause_.ask(ranks);
        fail_as_told(call, cause_.time_to_answer());
      }
      fail(late_step_error(waiting_in(call), error, timed_out_in_words(call), "between hosts"));
    }
    std::string text = error.what();
    text.insert(std::min(text.size(), text.find(kDo)),
                fmt::format(" (that was the step between hosts, with rank {})", partners_));
    fail(DiagnosedAs<PeerError>(text, verdicts_of(error)));
  }
}

// The missing ranks that share their host with other ranks.
std::vector<int> HostSteps::ranks_to_ask(const DistError& error) const {
  std::vector<int> ranks;
  for (const Verdict& verdict : verdicts_of(error)) {
    for (const std::vector<int>& host : layout_.hosts) {
      for (const int rank : verdict.ranks) {
        if (host.size() > 1 && std::find(host.begin(), host.end(), rank) != host.end()) ranks.push_back(rank);
      }
    }
  }
  return ranks;
}

template <class E>
void HostSteps::fail(const E& error) {
  fail(std::make_exception_ptr(error), error);
}
// `error` is what `pointer` points to.
void HostSteps::fail(const std::exception_ptr& pointer, const std::exception& error) {
  break_with(pointer, error.what(), {rank_, error.what(), verdicts_of(error)});
  throw_if_broken();
  std::rethrow_exception(pointer);  // not reached
}

void HostSteps::break_with(std::exception_ptr error, const std::string& what, const Reason& reason) noexcept {
  {
    std::lock_guard lock(mutex_);
    if (broken_) return;
    broken_ = std::move(error);
  }
  changed_.notify_all();
  on_break_(what);
  cause_.tell(reason);
  inside_->abort(what);
  if (between_) between_->abort(what);
}

std::string HostSteps::timed_out_in_words(const HostsCall& call) const {
  const int64_t early = early_after_ms_;
  return fmt::format("timed out after {} ms", early > 0 ? early : call.timeout.count());
}

bool HostSteps::has_to_end() const noexcept {
  const int64_t since = early_since_;
  return since > 0 && now_ns() >= since + patience_ns_;
}

void HostSteps::end_early(Milliseconds waited) {
  early_after_ms_ = std::max<int64_t>(1, waited.count());
  early_since_ = now_ns();
  std::unique_lock lock(mutex_);
  // The last step of a collective waits longest for reports of other ranks.
  changed_.wait_for(lock, 4 * patience_of_steps(waited) + std::chrono::seconds(10), [&] { return broken_ != nullptr; });
  if (broken_) std::rethrow_exception(broken_);
}

void HostSteps::throw_if_broken() {
  std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
}

// Fails with the verdict of another rank, if one is published within `time`.
void HostSteps::fail_as_told(const HostsCall& call, Milliseconds time) {
  std::optional<Reason> reason = cause_.told(time);
  if (!reason || reason->rank == rank_) return;
  const std::exception_ptr told =
      reported_error(waiting_in(call), names_(reason->rank), reason->text, reason->verdicts);
  try {
    std::rethrow_exception(told);
  } catch (const std::exception& error) {
    fail(told, error);
  }
}

}  // namespace brigade::dist
