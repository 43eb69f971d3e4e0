// Finds the other reducers of a parameter among the observers of its gradient.
#include <brigade/dist/reducer/shared_leaves.h>

#include <brigade/autograd/meta.h>
#include <brigade/core/fnv.h>
#include <brigade/dist/reducer/reducer.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <utility>

namespace brigade::dist {

std::vector<SharedLeaves::Sharer> SharedLeaves::sharers_of(const Tensor& leaf, const autograd::Listener* self) {
  std::vector<Sharer> found;
  for (const autograd::AutogradMeta::Observer& observer : autograd::meta(leaf)->observers) {
    auto* const reducer = dynamic_cast<Reducer*>(observer.listener);
    if (reducer && reducer != self) found.push_back({reducer, &reducer->shared_leaves(), observer.tag});
  }
  return found;
}

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
    // The gradient lives in a bucket of another reducer.
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
  } catch (...) {  // device error: the gradient stays where it is
  }
  if (others.size() == 1) {
    --others.front().leaves->count_;
    others.front().leaves->setup_.sharing[others.front().parameter] = Sharing::None;
  }
  return true;
}

// Lists each reducer once.
std::vector<SharedLeaves::Sharer> SharedLeaves::sharing_reducers() const {
  std::vector<Sharer> found;
  for (uint32_t i = 0; i < setup_.count(); ++i) {
    if (setup_.sharing[i] == Sharing::None) continue;
    for (const Sharer& each : sharers_of(setup_.parameters[i].tensor, self_)) {
      if (std::ranges::find(found, each.reducer, &Sharer::reducer) == found.end()) found.push_back(each);
    }
  }
  return found;
}

bool SharedLeaves::are_in_join() const {
  return count_ > 0 && std::ranges::any_of(sharing_reducers(),
                                           [](const Sharer& each) { return each.reducer->setup().join != nullptr; });
}

void SharedLeaves::note_end_of_join() {
  for (const Sharer& each : sharing_reducers())
    ++each.leaves->joins_;
}

void SharedLeaves::begin_forward() {
  if (count_ == 0) return;
  constexpr size_t kMostForwards = 64;
  if (forwards_.size() == kMostForwards) forwards_.pop_front();
  forwards_.push_back({autograd::recorded_nodes(), ~uint64_t{0}});
}

void SharedLeaves::end_forward(bool failed) noexcept {
  if (failed && !forwards_.empty()) forwards_.pop_back();
  if (!forwards_.empty()) forwards_.back().to = std::min(forwards_.back().to, autograd::recorded_nodes());
}

void SharedLeaves::pass_over_empty_forwards() noexcept {
  std::erase_if(forwards_, [](const Forward& each) { return each.from == each.to && each.backward == 0; });
}

bool SharedLeaves::has_forward_in(const autograd::Plan& plan) {
  bool found = false;
  for (Forward& each : forwards_) {
    if (each.from == each.to && each.backward == 0) each.backward = plan.number();
    found = found || each.backward == plan.number() || plan.holds_recorded(each.from, each.to);
  }
  return found;
}

SharedLeaves::Claim SharedLeaves::claim_to(const autograd::Plan& plan, const Sharer& sharer) {
  SharedLeaves& leaves = *sharer.leaves;
  bool own = false;
  plan.for_each_observed(leaves.self_, [&](uint32_t tag) { own = own || leaves.setup_.sharing[tag] == Sharing::None; });
  if (leaves.has_forward_in(plan) ||
      (leaves.accumulation_.syncs() && sharer.reducer->forwards().take_part_in(plan, own)))
    return Claim::Forward;
  return own ? Claim::OwnParameter : Claim::None;
}

template <class F>
std::vector<OfOthers> SharedLeaves::share_out_by(F&& claim, std::vector<uint8_t>& planned) {
  std::vector<OfOthers> of_others;
  if (count_ == 0) return of_others;
  std::vector<std::pair<const SharedLeaves*, Claim>> known;  // few entries
  const auto claim_once = [&](const Sharer& each) {
    const auto found = std::ranges::find(known, each.leaves, &std::pair<const SharedLeaves*, Claim>::first);
    if (found != known.end()) return found->second;
    return known.emplace_back(each.leaves, claim(each)).second;
  };
  for (uint32_t i = 0; i < setup_.count(); ++i) {
    if (setup_.sharing[i] == Sharing::None) continue;
    const std::vector<Sharer> all = sharers_of(setup_.parameters[i].tensor, nullptr);
    const Sharer& first = *std::ranges::max_element(all, {}, claim_once);
    const bool is_claimed = claim_once(first) != Claim::None;
    if (!is_claimed && !planned[i]) continue;
    const Sharer& averaging = is_claimed ? first : all.back();
    averaging.leaves->average_here(averaging.parameter);
    if (!setup_.is_elsewhere(i)) continue;
    of_others.resize(planned.size());
    of_others[i] = std::exchange(planned[i], uint8_t{0}) ? OfOthers::Reached : OfOthers::Unreached;
  }
  return of_others;
}

std::vector<OfOthers> SharedLeaves::share_out(const autograd::Plan& plan, std::vector<uint8_t>& planned) {
  return share_out_by([&](const Sharer& each) { return claim_to(plan, each); }, planned);
}

std::vector<OfOthers> SharedLeaves::share_out_among(std::span<const Reducer* const> reducers) {
  std::vector<uint8_t> planned(setup_.count(), 0);
  const auto claim = [&](const Sharer& each) {
    return std::ranges::find(reducers, each.reducer) != reducers.end() ? Claim::Forward : Claim::None;
  };
  return share_out_by(claim, planned);
}

void SharedLeaves::take_unclaimed(std::span<const OfOthers> of_others) {
  for (uint32_t i = 0; i < setup_.count() && count_ > 0; ++i) {
    if (setup_.is_elsewhere(i) && (of_others.empty() || of_others[i] == OfOthers::No)) average_here(i);
  }
}

uint64_t SharedLeaves::averages(uint64_t round) const {
  if (count_ == 0 || are_in_join()) return 0;
  uint64_t hash = fnv_step(kFnvStart, round);  // what collides in one backward differs in the next
  for (const Sharing each : setup_.sharing)
    hash = fnv_step(hash, static_cast<uint64_t>(each));
  return hash;
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
