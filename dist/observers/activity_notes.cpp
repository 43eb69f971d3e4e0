// Notes this rank's activity at each event of a reducer.
#include <brigade/dist/observers/activity_notes.h>

#include <brigade/dist/observers/missed_wrappers.h>
#include <brigade/dist/reducer/round.h>

namespace brigade::dist {

void ActivityNotes::on_unrecorded_forward(SourceLocation where, SourceLocation opened) const {
  MissedWrappers::of_this_thread().add_forward(this, *group_, owner_, where, opened);
}

void ActivityNotes::on_end_of_wrapper() const noexcept { MissedWrappers::of_this_thread().end(this); }

void ActivityNotes::on_forward() { MissedWrappers::of_this_thread().forget(this); }

// The notes of what came last have no line, since this rank's current location is not known.
void ActivityNotes::on_forward_end() noexcept {
  if (autograd::GradMode::is_enabled())
    MissedWrappers::of_this_thread().note({.doing = Doing::AfterForward, .owner = owner_}, *group_);
}

void ActivityNotes::on_passed_by(const autograd::Plan& plan) {
  MissedWrappers& missed = MissedWrappers::of_this_thread();
  missed.add_backward(this, *group_, owner_, plan.where());
  missed.note({.doing = Doing::Backward, .where = plan.where()}, *group_);
}

void ActivityNotes::on_refused() { group_->note_activity({.doing = Doing::RefusedBackward, .owner = owner_}); }

void ActivityNotes::on_step(const autograd::Update& update, uint32_t local_backwards) {
  const Owner optimizer{Name(update.name)};
  stepping_ = {.doing = Doing::AfterStep, .owner = optimizer, .after = update.where};
  const RankActivity step{
      .doing = Doing::Step, .owner = optimizer, .local_backwards = local_backwards, .where = update.where};
  if (local_backwards > 0) {
    group_->note_activity(step);
  } else {
    MissedWrappers::of_this_thread().note(step, *group_);
  }
}

void ActivityNotes::on_step_end() noexcept {
  if (stepping_.doing != Doing::Nothing) MissedWrappers::of_this_thread().note(stepping_, *group_);
  stepping_ = {};
}

void ActivityNotes::on_begin(const Round& round, const autograd::Plan* plan) {
  if (!plan) return;
  MissedWrappers& missed = MissedWrappers::of_this_thread();
  missed.forget(this);
  missed.note(missed.in_backward(plan->number(), owner_, round.start().forward, plan->where()), *group_);
}

void ActivityNotes::on_backward_end(const autograd::Plan& plan) noexcept {
  const MissedWrappers& missed = MissedWrappers::of_this_thread();
  if (missed.has_broken_off(plan.number())) return;
  missed.note({.doing = Doing::AfterBackward, .owner = owner_, .after = plan.where()}, *group_);
}

void ActivityNotes::on_group_error() noexcept { MissedWrappers::of_this_thread().break_off(); }

}  // namespace brigade::dist
