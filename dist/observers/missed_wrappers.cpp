// Keeps one entry per wrapper in a list.
#include <brigade/dist/observers/missed_wrappers.h>

#include <brigade/dist/groups/process_group.h>

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

}  // namespace brigade::dist
