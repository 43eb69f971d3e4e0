// The steps of a collective over several hosts: inside the own host (shared memory) and between hosts
// (Gloo).
//
// A collective has the group's timeout for all its steps together (the last ones a little more). The
// steps say which collective they are a step of, so that both groups compare that and errors speak
// of it. When a step fails, the rank says why in the store, then breaks both of its groups: so the
// others on its host and its partners on other hosts stop at once, and give the same verdict. Who
// gives up on ranks of another host asks them first whether they wait for somebody themselves
// (cause.h).
#pragma once

#include <brigade/core/clock.h>
#include <brigade/dist/groups/chain.h>
#include <brigade/dist/groups/collective_errors.h>
#include <brigade/dist/groups/hosts/cause.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/shm/shared_group.h>
#include <brigade/dist/rendezvous/rank_hosts.h>
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

// A posted collective, and until when it may take.
struct HostsCall {
  using Clock = std::chrono::steady_clock;

  CollectiveOptions options;  // its words and topic are those of `info`
  CollectiveInfo info;
  std::chrono::milliseconds timeout{0};
  Clock::time_point deadline;

  // For a step of it.
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

// Each later step waits so much longer, so that those who can see who is missing speak first.
std::chrono::milliseconds patience_of_steps(std::chrono::milliseconds timeout);

class HostSteps {
 public:
  // Connects the ranks. The first rank of each host leads it; all ranks have partners on the other
  // hosts where these have the same number of ranks, else only the leaders. `layout` must outlive
  // it. `on_break` gets the text of the first failure.
  HostSteps(std::shared_ptr<Store> store, int rank, std::chrono::milliseconds timeout, const std::string& prefix,
            const HostLayout& layout, RankNames names, std::function<void(const std::string&)> on_break);

  // The ranks of this host.
  shm::SharedGroup* inside_group() const noexcept { return inside_.get(); }
  // The ranks with this place on all hosts, or the leaders; null for those who talk to nobody.
  ChainGroup* between_group() const noexcept { return between_.get(); }

  // A step inside the host; `last` when it comes after one between hosts, whose delay it must bear.
  // Throws what broke the group.
  void inside(const HostsCall& call, const std::function<WorkPtr()>& post, bool last = false);
  void between(const HostsCall& call, const std::function<WorkPtr()>& post);

  // For a wait that has had less time than the group's: ends the step that is running, and throws what
  // that finds out. Called by another thread than the one that waits for steps.
  void end_early(std::chrono::milliseconds waited);

  // The first failure counts; the peers learn of it.
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
  std::string partners_;  // the ranks of other hosts that this one talks to
  std::shared_ptr<shm::SharedGroup> inside_;
  std::shared_ptr<ChainGroup> between_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr broken_;
  // See end_early(): how long that wait was, and since when steps have to end, by the clock of now_ns(); 0: never.
  std::atomic<int64_t> early_after_ms_{0};
  std::atomic<int64_t> early_since_{0};
  std::atomic<int64_t> patience_ns_{0};  // of the step that is running
};

}  // namespace brigade::dist
