// The reducer's part in a backward of its peers that this rank's loss left out: the forward waits for its backward, and
// none comes that reaches a parameter. Without that part the peers would wait for this rank.
#include <brigade/autograd/detail/findings.h>
#include <brigade/autograd/meta.h>
#include <brigade/core/detail/living.h>
#include <brigade/dist/reducer/launch_order.h>
#include <brigade/dist/reducer/reducer.h>

#include <algorithm>

namespace brigade::dist {
namespace {

using LivingReducers = brigade::detail::Living<Reducer>;

// For a root without a history on this thread: whether the peers reduce this reducer's parameters in its backward, as
// far as that is known. If it is not known, every reducer takes part.
bool backward_may_concern(const Reducer& reducer) {
  const std::vector<uint64_t>& leaves = autograd::detail::leaves_of_refused_root();
  const auto holds_one = [&](const Reducer& each) {
    return std::ranges::any_of(each.parameters(), [&](const NamedParameter& parameter) {
      return std::ranges::find(leaves, parameter.tensor.id()) != leaves.end();
    });
  };
  return holds_one(reducer) || !LivingReducers::all().any(holds_one);
}

}  // namespace

bool Reducer::passes_by_all(const autograd::Plan& plan) const {
  if (plan.nodes() == 0 || forwards_.goes_through(plan)) return false;
  bool some_recorded = false;
  const bool is_of_one = LivingReducers::all().any([&](const Reducer& each) {
    if (&each == this || each.setup_.group != setup_.group || !each.accumulation_.syncs() ||
        !each.forwards_.are_pending())
      return false;
    bool reached = each.forwards_.goes_through(plan);
    plan.for_each_observed(&each, [&](uint32_t) { reached = true; });
    some_recorded = some_recorded || !each.forwards_.may_be_in(plan);
    return reached;
  });
  return some_recorded && !is_of_one;
}

// Whether the gradient was averaged and no step has used it yet.
bool Reducer::awaits_use(const Tensor& leaf) const {
  const int64_t position = find(leaf);
  if (position < 0 || accumulation_.local(static_cast<uint32_t>(position)).backwards > 0) return false;
  const autograd::AutogradMeta& meta = *autograd::meta(leaf);
  return meta.grad.defined() && meta.stamp.backwards > meta.stamp.backwards_used;
}

bool Reducer::is_wanted(std::span<const Tensor> leaves) const {
  if (!forwards_.are_pending() || !forwards_.were_passed_by() || !accumulation_.syncs() ||
      forwards_.left_out().passed_by == 0)
    return false;
  // If a gradient awaits its use, the pending forward came after the backward of that gradient.
  return std::ranges::none_of(leaves, [&](const Tensor& leaf) { return leaf.defined() && awaits_use(leaf); });
}

bool Reducer::is_meant(const TracedBackward& backward) const {
  return std::ranges::any_of(setup_.options.observers,
                             [&](const auto& each) { return each->is_meant(setup_.parameters, backward); });
}

TracedBackward Reducer::begin_wanted(std::span<Reducer* const> wanted) {
  if (broken_) std::rethrow_exception(broken_);
  const Forwards::Forward open = forwards_.left_out();
  const TracedBackward backward =
      forwards_.take_passed_by([this](const TracedBackward& each) { return is_meant(each); });
  if (setup_.join) setup_.join->before_round(backward.where());
  Round& round = start_round({.where = backward.where(),
                              .planned = std::vector<uint8_t>(setup_.count(), 0),
                              .of_others = shared_.share_out_among({wanted.data(), wanted.size()}),
                              .absent = !accumulation_.has_gathered(setup_.parameters)});
  forwards_.set_unreached_by(backward);
  if (setup_.follower.begins) setup_.follower.begins(round.start().planned);
  round.take_turns(LaunchOrder::of_this_thread(), open.number);
  need_no_forwards();  // the peers' backward
  round.begin();
  return backward;
}

// The peers ran one backward through all reducers that this rank's left out, whichever optimizers have their parameters.
// They send in the order of LaunchOrder, and end in construction order.
void Reducer::on_gradients_wanted(std::span<const Tensor> leaves) {
  const uint64_t backward = is_wanted(leaves) ? forwards_.left_out().passed_by : 0;
  std::vector<Reducer*> wanted;
  LivingReducers::all().for_each([&](Reducer& each) {
    if (each.setup_.group != setup_.group) return;
    each.forwards_.note_use();
    if (backward > 0 && each.is_wanted(leaves) && each.forwards_.left_out().passed_by == backward)
      wanted.push_back(&each);
  });
  if (wanted.empty()) return need_no_forwards();
  std::ranges::sort(wanted, {}, &Reducer::made_as_);
  std::vector<TracedBackward> backwards;
  try {
    for (Reducer* const each : wanted)
      backwards.push_back(each->begin_wanted(wanted));
  } catch (...) {
    for (Reducer* const each : wanted)
      each->on_error(nullptr, std::current_exception());
    throw;
  }
  std::exception_ptr first_error;
  for (size_t i = 0; i < wanted.size(); ++i) {
    try {
      wanted[i]->finish_round(&backwards[i]);
    } catch (...) {
      if (!first_error) first_error = std::current_exception();
    }
  }
  if (first_error) std::rethrow_exception(first_error);
}

void Reducer::on_refused() noexcept {
  // No plan will come, but peers may be waiting for this backward.
  if (broken_ || !forwards_.are_pending() || !accumulation_.syncs() || setup_.parameters.empty() ||
      !backward_may_concern(*this))
    return;
  try {
    setup_.notify([](ReducerObserver& each) { each.on_refused(); });
    const bool held = announce({});
    Round& round = start_round({.planned = std::vector<uint8_t>(setup_.count(), 0), .failed = true, .held = held});
    // As on the peers when a backward runs through several wrappers: all buckets come before the first report.
    round.take_turns(LaunchOrder::of_this_thread(), forwards_.open().number);
    round.begin();
  } catch (...) {
    give_up();
  }
}

}  // namespace brigade::dist
