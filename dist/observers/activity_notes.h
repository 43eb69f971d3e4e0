// Tells the peers what this rank does, for the errors of collectives that they meet without it.
#pragma once

#include <brigade/dist/errors/rank_activity.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/reducer/observer.h>

namespace brigade::dist {

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
