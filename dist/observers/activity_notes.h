// Tells the peers what this rank does, for the errors of collectives that they meet without it: the forwards that its
// backward belongs to, and the wrappers it misses because their forward ran under no_grad or the backward reaches none of
// their parameters. A peer that reduces such a wrapper at the same point of the program then knows why this rank does
// not.
#pragma once

#include <brigade/core/place.h>
#include <brigade/dist/errors/rank_activity.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/reducer/observer.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace brigade::dist {

// One instance per thread.
class MissedWrappers {
 public:
  static MissedWrappers& of_this_thread();
  // Clears the lists: wrappers that are static objects outlive this object.
  ~MissedWrappers() {
    all_.clear();
    lines_.clear();
  }

  // Notes that the latest forward of `wrapper` was not recorded. `opened`: the guard; no line if unknown. The wrapper
  // counts as missed only the first time this happens at a line: a second time shows that the program intends it, for
  // example to evaluate.
  void add_forward(const void* wrapper, const ProcessGroup& group, const Owner& owner, SourceLocation where,
                   SourceLocation opened);
  // Notes that the latest forward of `wrapper` was recorded, but the backward at `where` has reached nothing of it.
  void add_backward(const void* wrapper, const ProcessGroup& group, const Owner& owner, SourceLocation where);
  // forget(): the wrapper's next forward records, or its backward is reduced. end(): the wrapper is destroyed.
  void forget(const void* wrapper) noexcept {
    if (!all_.empty()) erase(wrapper);
  }
  void end(const void* wrapper) noexcept;

  // Adds a wrapper to the activity of this thread in backward `number`, at `where`, and returns that activity.
  // `forward`: no line if unknown.
  const RankActivity& in_backward(uint64_t number, const Owner& owner, SourceLocation forward, SourceLocation where);
  // Marks the latest such backward as failed in a collective: its activity has to stay noted, since the peers now
  // read it.
  void break_off() noexcept { broken_ = backward_; }
  bool has_broken_off(uint64_t number) const noexcept { return broken_ == number; }
  // Reports to the peers of `group` what this rank does, with the wrappers of that group that it has missed, latest
  // first.
  void note(RankActivity activity, ProcessGroup& group) const;

 private:
  struct Missed {
    const void* wrapper;
    const ProcessGroup* group;
    RankActivity::Missed missed;
  };
  void add(Missed missed);
  void erase(const void* wrapper) noexcept;

  std::vector<Missed> all_;                           // one per wrapper, latest last
  std::vector<std::pair<const void*, Place>> lines_;  // of forwards that were not recorded
  uint64_t backward_ = 0, broken_ = 0;
  RankActivity in_backward_;
};

class ActivityNotes final : public ReducerObserver {
 public:
  ActivityNotes(ProcessGroupPtr group, Owner owner) noexcept : group_(std::move(group)), owner_(std::move(owner)) {}

  // Called for a forward that is not recorded. `opened`: the guard; no line if unknown.
  void on_unrecorded_forward(SourceLocation where, SourceLocation opened) const;
  // Called when the wrapper is destroyed; the reducer may outlive it.
  void on_end_of_wrapper() const noexcept;

  void on_forward() override;
  void on_forward_end() noexcept override;
  void on_passed_by(const autograd::Plan& plan) override;
  void on_refused() override;
  void on_step(const autograd::Update& update, uint32_t local_backwards) override;
  void on_step_end() noexcept override;
  void on_begin(const Round& round, const autograd::Plan* plan) override;
  void on_backward_end(const autograd::Plan& plan) noexcept override;
  void on_group_error() noexcept override;

 private:
  ProcessGroupPtr group_;
  Owner owner_;
  RankActivity stepping_;  // activity after the step that is running; empty outside of one
};

}  // namespace brigade::dist
