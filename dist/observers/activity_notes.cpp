// Notes this rank's activity at each event of a reducer, and keeps one entry per missed wrapper in a list.
#include <brigade/dist/observers/activity_notes.h>

#include <brigade/dist/reducer/round.h>

#include <algorithm>
#include <utility>

namespace brigade::dist {
namespace {
using How = RankActivity::Missed::How;
}  // namespace

MissedWrappers& MissedWrappers::of_this_thread() {
  thread_local MissedWrappers one;
  return one;
}

void MissedWrappers::add(Missed missed) {
  erase(missed.wrapper);
  all_.push_back(std::move(missed));
}

void MissedWrappers::erase(const void* wrapper) noexcept {
  std::erase_if(all_, [wrapper](const Missed& each) { return each.wrapper == wrapper; });
}

void MissedWrappers::end(const void* wrapper) noexcept {
  forget(wrapper);
  std::erase_if(lines_, [wrapper](const auto& each) { return each.first == wrapper; });
}

void MissedWrappers::add_forward(const void* wrapper, const ProcessGroup& group, const Owner& owner,
                                 SourceLocation where, SourceLocation opened) {
  constexpr size_t kMostLines = 256;
  const std::pair<const void*, Place> line(wrapper, where);
  const bool is_first = lines_.size() < kMostLines && std::ranges::find(lines_, line) == lines_.end();
  if (!is_first) return forget(wrapper);
  lines_.push_back(line);
  const bool is_known = opened.line() != 0 && !is_in_standard_library(opened);
  add({wrapper, &group, {How::ForwardUnderNoGrad, owner, where, is_known ? Line(opened) : Line()}});
}

void MissedWrappers::add_backward(const void* wrapper, const ProcessGroup& group, const Owner& owner,
                                  SourceLocation where) {
  add({wrapper, &group, {How::BackwardReachesNothing, owner, where}});
}

const RankActivity& MissedWrappers::in_backward(uint64_t number, const Owner& owner, SourceLocation forward,
                                                SourceLocation where) {
  if (backward_ != number || in_backward_.doing != Doing::Backward) {
    in_backward_ = {.doing = Doing::Backward};
    backward_ = number;
  }
  in_backward_.where = where;
  in_backward_.add(RankActivity::OfForward{owner, forward});
  return in_backward_;
}

void MissedWrappers::note(RankActivity activity, ProcessGroup& group) const {
  for (auto each = all_.rbegin(); each != all_.rend(); ++each) {
    if (each->group == &group) activity.add(each->missed);
  }
  group.note_activity(activity);
}

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
