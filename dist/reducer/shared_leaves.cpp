// The other reducers of a parameter are found among the observers of its gradient.
#include <brigade/dist/reducer/shared_leaves.h>

#include <brigade/autograd/meta.h>
#include <brigade/dist/reducer/reducer.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <utility>

namespace brigade::dist {

namespace {

struct Sharer {
  SharedLeaves* leaves;
  uint32_t parameter;  // its position there
};

// In the order in which they were constructed; but for `self`.
std::vector<Sharer> sharers_of(const Tensor& leaf, const autograd::Listener* self) {
  std::vector<Sharer> found;
  for (const autograd::AutogradMeta::Observer& observer : autograd::meta(leaf)->observers) {
    auto* const reducer = dynamic_cast<Reducer*>(observer.listener);
    if (reducer && reducer != self) found.push_back({&reducer->shared_leaves(), observer.tag});
  }
  return found;
}

}  // namespace

void SharedLeaves::begin(const autograd::Listener& self) {
  self_ = &self;
  for (uint32_t i = 0; i < setup_.count(); ++i) {
    if (!sharers_of(setup_.parameters[i].tensor, self_).empty()) average_here(i);
  }
}

void SharedLeaves::average_here(uint32_t parameter) {
  if (setup_.sharing[parameter] == Sharing::Here) return;
  const Tensor& leaf = setup_.parameters[parameter].tensor;
  for (const Sharer& each : sharers_of(leaf, self_))
    each.leaves->average_elsewhere(each.parameter);
  count_ += setup_.sharing[parameter] == Sharing::None;
  setup_.sharing[parameter] = Sharing::Here;
  autograd::AutogradMeta& meta = autograd::ensure_meta(leaf);
  if (setup_.options.gradient_as_bucket_view) {
    autograd::set_grad_target(leaf, buckets_.slot(parameter).view);
    meta.adopt_target();
  } else if (meta.grad_target.defined()) {
    // It lives in a bucket of another.
    if (meta.grad.defined()) meta.hold(kernels::clone(meta.grad));
    autograd::set_grad_target(leaf, Tensor());
  }
}

void SharedLeaves::average_elsewhere(uint32_t parameter) noexcept {
  count_ += setup_.sharing[parameter] == Sharing::None;
  setup_.sharing[parameter] = Sharing::Elsewhere;
}

bool SharedLeaves::hand_over(uint32_t parameter) noexcept {
  if (setup_.sharing[parameter] == Sharing::None) return false;
  const std::vector<Sharer> others = sharers_of(setup_.parameters[parameter].tensor, self_);
  if (others.empty()) return false;
  try {
    if (setup_.sharing[parameter] == Sharing::Here) others.back().leaves->average_here(others.back().parameter);
  } catch (...) {  // of the device: it stays where it is
  }
  if (others.size() == 1) {
    --others.front().leaves->count_;
    others.front().leaves->setup_.sharing[others.front().parameter] = Sharing::None;
  }
  return true;
}

void SharedLeaves::begin_forward() {
  if (count_ == 0) return;
  constexpr size_t kMostForwards = 64;
  if (forwards_.size() == kMostForwards) forwards_.pop_front();
  forwards_.push_back({autograd::recorded_nodes(), ~uint64_t{0}});
}

void SharedLeaves::end_forward() noexcept {
  if (!forwards_.empty()) forwards_.back().to = std::min(forwards_.back().to, autograd::recorded_nodes());
}

bool SharedLeaves::has_forward_in(const autograd::Plan& plan) const {
  return std::ranges::any_of(forwards_, [&](const Forward& each) { return plan.holds_recorded(each.from, each.to); });
}

bool SharedLeaves::share_out(const autograd::Plan& plan, std::vector<uint8_t>& planned) {
  if (count_ == 0) return false;
  std::vector<std::pair<const SharedLeaves*, bool>> known;  // of few
  const auto takes_part = [&](const SharedLeaves* leaves) {
    const auto found = std::ranges::find(known, leaves, &std::pair<const SharedLeaves*, bool>::first);
    if (found != known.end()) return found->second;
    return known.emplace_back(leaves, leaves->has_forward_in(plan)).second;
  };
  bool any_elsewhere = false;
  for (uint32_t i = 0; i < setup_.count(); ++i) {
    if (!planned[i] || setup_.sharing[i] == Sharing::None) continue;
    const std::vector<Sharer> all = sharers_of(setup_.parameters[i].tensor, nullptr);
    const auto first = std::ranges::find_if(all, takes_part, &Sharer::leaves);
    if (first != all.end()) first->leaves->average_here(first->parameter);
    if (setup_.sharing[i] != Sharing::Elsewhere) continue;
    planned[i] = 0;
    any_elsewhere = true;
  }
  return any_elsewhere;
}

void SharedLeaves::reduced(std::span<const int> users) {
  for (uint32_t i = 0; i < setup_.count() && count_ > 0; ++i) {
    if (setup_.sharing[i] != Sharing::Here || users[i] == 0) continue;
    const Tensor& leaf = setup_.parameters[i].tensor;
    for (const Sharer& each : sharers_of(leaf, self_))
      each.leaves->accumulation_.reduced(each.parameter, leaf);
  }
}

}  // namespace brigade::dist
