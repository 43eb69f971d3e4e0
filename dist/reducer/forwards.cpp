// Matches forwards and backwards by the nodes that were recorded.
#include <brigade/dist/reducer/forwards.h>

#include <brigade/autograd/tape.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace brigade::dist {

void Forwards::begin(int64_t rows, SourceLocation where) {
  pending_ = true;
  rows_ = rows;
  if (!all_.empty() && all_.back().failed) all_.pop_back();
  // Bounded, because evaluations that no backward follows would make the list grow.
  constexpr size_t kMostForwards = 64;
  if (all_.size() == kMostForwards) all_.erase(all_.begin());
  static std::atomic<uint64_t> forwards{0};
  all_.push_back({.from = autograd::recorded_nodes(), .to = UINT64_MAX, .number = ++forwards, .where = where});
}

void Forwards::end(bool failed) noexcept {
  if (all_.empty()) return;
  all_.back().to = std::min(all_.back().to, autograd::recorded_nodes());
  all_.back().failed = failed;
}

void Forwards::forget() noexcept {
  pending_ = false;
  all_.clear();
  passed_by_.clear();
  unreached_by_.reset();
  others_reached_ = false;
}

bool Forwards::goes_through(const autograd::Plan& plan) const {
  return std::ranges::any_of(all_, [&](const Forward& each) { return plan.holds_recorded(each.from, each.to); });
}

bool Forwards::may_be_in(const autograd::Plan& plan) const {
  const auto is_empty = [](const Forward& each) { return each.from == each.to && each.passed_by > 0; };
  return plan.nodes() == 0 || goes_through(plan) || std::ranges::any_of(all_, is_empty);
}

bool Forwards::take_part_in(const autograd::Plan& plan, bool own) const {
  const auto needs_backward = [](const Forward& each) { return each.passed_by > 0; };
  return pending_ && (own ? std::ranges::any_of(all_, needs_backward) : may_be_in(plan));
}

const Forwards::Forward* Forwards::of(const autograd::Plan& plan) const {
  if (all_.empty()) return nullptr;
  return &*std::find_if(all_.begin(), all_.end() - 1,
                        [&](const Forward& each) { return plan.holds_recorded(each.from, each.to); });
}

void Forwards::pass_by(const autograd::Plan& plan) {
  if (passed_by_.size() == autograd::Tape::kBackwards) passed_by_.erase(passed_by_.begin());
  passed_by_.emplace_back(plan.where(), plan.number());
  for (Forward& each : all_)
    each.passed_by = std::min(each.passed_by, plan.number());
}

void Forwards::take_part(const autograd::Plan& plan) {
  passed_by_.clear();
  for (Forward& each : all_)
    if (each.from == each.to || plan.holds_recorded(each.from, each.to)) each.passed_by = 0;
}

void Forwards::note_use() noexcept {
  for (Forward& each : all_)
    ++each.uses;
}

void Forwards::need_none() noexcept {
  for (Forward& each : all_)
    each.passed_by = 0;
}

Forwards::Forward Forwards::open(uint64_t backward) const noexcept {
  Forward found{.passed_by = 0};
  for (const Forward& each : all_) {
    const bool is_later =
        each.passed_by > found.passed_by || (each.passed_by == found.passed_by && each.uses < found.uses);
    if (each.passed_by <= backward && is_later) found = each;
  }
  return found;
}

TracedBackward Forwards::take_passed_by(const std::function<bool(const TracedBackward&)>& is_meant) {
  const std::vector<TracedBackward> all = std::exchange(passed_by_, {});
  const auto meant = std::find_if(all.rbegin(), all.rend(), is_meant);
  if (meant != all.rend()) return *meant;
  const uint64_t left_out = open(all.back().number()).passed_by;
  return *std::find_if(all.begin(), all.end() - 1,
                       [&](const TracedBackward& each) { return each.number() >= left_out; });
}

}  // namespace brigade::dist
