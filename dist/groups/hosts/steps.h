// The steps of a collective over several hosts: inside this rank's host (shared memory) and between hosts (Gloo).
//
// The group's timeout covers all steps of a collective together (the last ones get a little more). Each step names the
// collective that it belongs to, so that both groups compare that collective and errors name it. When a step fails, the
// rank publishes the reason in the store, then breaks both of its groups: so the other ranks on its host and its
// partners on other hosts stop at once, and report the same verdict. A rank that is about to give up on ranks of
// another host first asks whether those are waiting themselves (cause.h).
#pragma once

#include <brigade/core/clock.h>
#include <brigade/dist/groups/chain.h>
#include <brigade/dist/groups/collective_errors.h>
#include <brigade/dist/groups/hosts/cause.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/shm/shared_group.h>
#include <brigade/dist/rendezvous/rendezvous.h>
#include <brigade/dist/rendezvous/store.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace brigade::dist {

// A posted collective and its deadline.
struct HostsCall {
  using Clock = std::chrono::steady_clock;

  CollectiveOptions options;  // with the description and topic of `info`
  CollectiveInfo info;
  std::chrono::milliseconds timeout{0};
  Clock::time_point deadline;

  // The options of a step of this collective.
  CollectiveOptions step(ReduceOp op = ReduceOp::Sum, int root = 0) const {
    CollectiveOptions result = options;
    result.op = op;
    result.root = root;
    result.step_of = &info;
    result.slot_sums = nullptr;
    return result;
  }
  CollectiveOptions step_from(int root) const { return step(ReduceOp::Sum, root); }
  std::chrono::milliseconds left() const {
    return std::max(std::chrono::milliseconds(1),
                    std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()));
  }
};

// The extra time that each later step waits, so that the ranks which can see who is missing report first.
std::chrono::milliseconds patience_of_steps(std::chrono::milliseconds timeout);

class HostSteps {
 public:
  // Connects the ranks. The first rank of each host is its leader. If all hosts have the same number of ranks, every
  // rank has partners on the other hosts, otherwise only the leaders have. `layout` must outlive this object.
  // `on_break` gets the text of the first failure.
  HostSteps(std::shared_ptr<Store> store, int rank, std::chrono::milliseconds timeout, const std::string& prefix,
            const HostLayout& layout, RankNames names, std::function<void(const std::string&)> on_break);

  // The ranks of this host.
  shm::SharedGroup* inside_group() const noexcept { return inside_.get(); }
  // The ranks with the same local index on all hosts, or the leaders; null for a rank without partners.
  ChainGroup* between_group() const noexcept { return between_.get(); }

  // Runs a step inside the host; `last`: it follows a step between hosts, whose delay it must tolerate. Throws the
  // error that broke the group.
  void inside(const HostsCall& call, const std::function<WorkPtr()>& post, bool last = false);
  void between(const HostsCall& call, const std::function<WorkPtr()>& post);

  // For a wait with a shorter timeout than the group's: ends the running step, and throws the resulting error. Called
  // from a different thread than the one that runs the steps.
  void end_early(std::chrono::milliseconds waited);

  // Breaks the group and notifies the peers; only the first failure counts.
  void break_with(std::exception_ptr error, const std::string& what, const Reason& reason) noexcept;
  void throw_if_broken();

 private:
  WaitingRank waiting_in(const HostsCall& call) const { return {names_(rank_), call.info}; }
  std::string timed_out_in_words(const HostsCall& call) const;
  bool has_to_end() const noexcept;
  std::vector<int> ranks_to_ask(const DistError& error) const;
  void fail_as_told(const HostsCall& call, std::chrono::milliseconds time);
  template <class E>
  [[noreturn]] void fail(const E& error);
  [[noreturn]] void fail(const std::exception_ptr& pointer, const std::exception& error);

  const int rank_;
  const RankNames names_;
  const HostLayout& layout_;
  const std::function<void(const std::string&)> on_break_;
  SharedCause cause_;
  std::string partners_;  // this rank's partners on other hosts
  std::shared_ptr<shm::SharedGroup> inside_;
  std::shared_ptr<ChainGroup> between_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr broken_;
  // See end_early(): the duration of that wait, and the time on the clock of now_ns() from which steps must end; 0:
  // none.
  std::atomic<int64_t> early_after_ms_{0};
  std::atomic<int64_t> early_since_{0};
  std::atomic<int64_t> patience_ns_{0};  // of the running step
};

}  // namespace brigade::dist
