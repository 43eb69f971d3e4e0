// Implements the reducer as a listener: decides which backwards are reduced, and keeps their results.
#include <brigade/dist/reducer/reducer.h>

#include <brigade/autograd/detail/frozen_leaves.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/tape.h>
#include <brigade/core/detail/living.h>
#include <brigade/dist/errors/mismatch.h>
#include <brigade/dist/reducer/launch_order.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace brigade::dist {

bool is_reduced(const Tensor& leaf) noexcept {
  const autograd::AutogradMeta* const known = autograd::meta(leaf);
  return known && std::ranges::any_of(known->observers, [](const auto& observer) {
           return dynamic_cast<const Reducer*>(observer.listener) != nullptr;
         });
}

namespace {

ReducerSetup filled(ReducerSetup setup) {
  setup.expected.assign(setup.count(), 1);
  setup.covered.assign(setup.count(), 0);
  setup.reached.assign(setup.count(), 0);
  setup.sharing.assign(setup.count(), Sharing::None);
  setup.register_words();
  return setup;
}

uint64_t next_number() noexcept {
  static std::atomic<uint64_t> reducers{0};
  return ++reducers;
}

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

// Whether the backward reaches a parameter that some reducer manages.
bool reaches_another(const autograd::Plan& plan) { return std::ranges::any_of(plan.leaves(), &is_reduced); }

}  // namespace

Reducer::Reducer(std::vector<NamedParameter> parameters, ProcessGroupPtr group, ReducerOptions options)
    : made_as_(next_number()),
      setup_(filled({.parameters = std::move(parameters), .group = std::move(group), .options = std::move(options)})),
      buckets_(setup_),
      accumulation_(setup_.count()),
      shared_(setup_, buckets_, accumulation_) {
  last_.users.resize(setup_.count());
  last_.last_used.resize(setup_.count());
  for (uint32_t i = 0; i < setup_.count(); ++i)
    autograd::observe(setup_.parameters[i].tensor, *this, i);
  shared_.begin(*this);
  LivingReducers::all().add(this);
}

Reducer::~Reducer() {
  LivingReducers::all().remove(this);
  for (uint32_t i = 0; i < setup_.count(); ++i) {
    const Tensor& leaf = setup_.parameters[i].tensor;
    autograd::stop_observing(leaf, *this);
    if (!shared_.hand_over(i)) autograd::set_grad_target(leaf, Tensor());
  }
}

int64_t Reducer::find(const Tensor& parameter) const noexcept {
  const autograd::AutogradMeta* known = autograd::meta(parameter);
  if (!known) return -1;
  for (const autograd::AutogradMeta::Observer& observer : known->observers)
    if (observer.listener == this) return observer.tag;
  return -1;
}

void Reducer::expect(std::span<const Tensor> parameters) {
  std::vector<uint8_t> expected(setup_.count(), 0);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int64_t position = find(parameters[i]);
    if (position < 0) {
      throw ValueError("{}: expect: tensor {} ({}) is not a parameter that this wrapper reduces", setup_.title(), i,
                       brigade::describe(parameters[i]));
    }
    expected[static_cast<size_t>(position)] = 1;
  }
  setup_.expected = std::move(expected);
}

void Reducer::expect_all() { std::fill(setup_.expected.begin(), setup_.expected.end(), uint8_t{1}); }

void Reducer::register_comm_hook(CommHookPtr hook) {
  if (!hook) throw ValueError("register_comm_hook: Communication hook must be callable.");
  if (setup_.hook) {
    throw DistError("register_comm_hook or register_builtin_comm_hook can only be called once. {} has `{}` already",
                    setup_.title(), setup_.hook->name());
  }
  if (last_.round > 0)
    throw DistError("register_comm_hook: {} has reduced {} backwards already; register the hook before", setup_.title(),
                    last_.round);
  setup_.hook = std::move(hook);
}

void Reducer::follow_buckets(BucketFollower follower) {
  const auto& owner = setup_.follower.owner;
  if (setup_.follower.reduced && !(owner && owner->expired())) {
    throw ValueError(
        "{}: its parameters are moved in backward already, by apply_optimizer_in_backward or a "
        "ZeroRedundancyOptimizer's overlap_with_ddp; there can be one of them",
        setup_.title());
  }
  setup_.follower = std::move(follower);
}

void Reducer::clear_gradients() {
  for (uint32_t i = 0; i < setup_.count(); ++i)
    if (!setup_.is_elsewhere(i)) autograd::meta(setup_.parameters[i].tensor)->clear();
  accumulation_.forget_all();
  forget_forward();
}

void Reducer::forget_forward() noexcept {
  forward_.pending = false;
  forward_.nodes.clear();
  forward_.passed_by.clear();
  forward_.unreached_by.reset();
  forward_.others_reached = false;
}

void Reducer::pass_over_forwards() noexcept {
  for (Forward::Nodes& each : forward_.nodes)
    each.passed_by = 0;
  shared_.pass_over_empty_forwards();
}

void Reducer::prepare_for_forward(int64_t rows, SourceLocation where) {
  setup_.notify([](ReducerObserver& each) { each.on_forward(); });
  if (kept_back_) std::rethrow_exception(take_kept_back());
  shared_.begin_forward();
  if (!syncs()) return;
  if (broken_) std::rethrow_exception(broken_);
  forward_.pending = true;
  forward_.rows = rows;
  // Bounded, because evaluations that no backward follows would make the list grow.
  constexpr size_t kMostForwards = 64;
  if (forward_.nodes.size() == kMostForwards) forward_.nodes.erase(forward_.nodes.begin());
  static std::atomic<uint64_t> forwards{0};
  forward_.nodes.push_back({autograd::recorded_nodes(), ~uint64_t{0}, ++forwards, where});
}

void Reducer::end_forward() noexcept {
  setup_.notify([](ReducerObserver& each) { each.on_forward_end(); });
  shared_.end_forward();
  if (!forward_.nodes.empty())
    forward_.nodes.back().to = std::min(forward_.nodes.back().to, autograd::recorded_nodes());
}

bool Reducer::goes_through_forward(const autograd::Plan& plan) const {
  return std::ranges::any_of(forward_.nodes,
                             [&](const Forward::Nodes& each) { return plan.holds_recorded(each.from, each.to); });
}

bool Reducer::is_of_forward(const autograd::Plan& plan) const {
  const auto is_empty = [](const Forward::Nodes& each) { return each.from == each.to && each.passed_by > 0; };
  return plan.nodes() == 0 || goes_through_forward(plan) || std::ranges::any_of(forward_.nodes, is_empty);
}

bool Reducer::takes_part_in(const autograd::Plan& plan, bool own) const {
  const auto needs_backward = [](const Forward::Nodes& each) { return each.passed_by > 0; };
  return syncs() && forward_.pending &&
         (own ? std::ranges::any_of(forward_.nodes, needs_backward) : is_of_forward(plan));
}

bool Reducer::passes_by_all(const autograd::Plan& plan) const {
  if (plan.nodes() == 0 || goes_through_forward(plan)) return false;
  bool some_recorded = false;
  const bool is_of_one = LivingReducers::all().any([&](const Reducer& each) {
    if (&each == this || each.setup_.group != setup_.group || !each.syncs() || !each.forward_.pending) return false;
    bool reached = each.goes_through_forward(plan);
    plan.for_each_observed(&each, [&](uint32_t) { reached = true; });
    some_recorded = some_recorded || !each.is_of_forward(plan);
    return reached;
  });
  return some_recorded && !is_of_one;
}

Reducer::Forward::Nodes Reducer::open_forward(uint64_t backward) const noexcept {
  Forward::Nodes open{.passed_by = 0};
  for (const Forward::Nodes& each : forward_.nodes) {
    const bool is_later =
        each.passed_by > open.passed_by || (each.passed_by == open.passed_by && each.uses < open.uses);
    if (each.passed_by <= backward && is_later) open = each;
  }
  return open;
}

const Reducer::Forward::Nodes* Reducer::forward_of(const autograd::Plan& plan) const {
  if (forward_.nodes.empty()) return nullptr;
  // The forwards that the backward does not go through are evaluations.
  const auto first = std::find_if(forward_.nodes.begin(), forward_.nodes.end() - 1,
                                  [&](const Forward::Nodes& each) { return plan.holds_recorded(each.from, each.to); });
  return &*first;
}

Round& Reducer::start_round(Round::Start start) {
  start.number = ++last_.round;
  shared_.take_unclaimed(start.of_others);
  if (!is_in_join()) start.averages = shared_.averages(start.number);
  start.rows = forward_.rows;
  const autograd::Plan* const plan = start.plan;
  round_.emplace(setup_, buckets_, accumulation_, recorded_, std::move(start));
  if (setup_.options.meter) setup_.options.meter->begin(*round_, plan);
  setup_.notify([&](ReducerObserver& each) { each.on_begin(*round_, plan); });
  return *round_;
}

void Reducer::on_plan(const autograd::Plan& plan) {
  std::vector<uint8_t> planned(setup_.count(), 0);
  bool reached = false;
  plan.for_each_observed(this, [&](uint32_t tag) { planned[tag] = reached = true; });
  if (reached) accumulation_.hear(plan.number());
  std::vector<OfOthers> of_others = shared_.share_out(plan, planned);
  if (!of_others.empty()) reached = std::ranges::find(planned, 1) != planned.end();
  accumulation_.gather(reached && !syncs());
  // A backward that reaches nothing of this reducer, with no pending forward, does not concern this group.
  if (!syncs() || setup_.parameters.empty() || (!reached && !forward_.pending)) return;
  forward_.others_reached = forward_.others_reached || (!reached && reaches_another(plan));
  const bool all_of_others = !of_others.empty() && std::ranges::find(of_others, OfOthers::No) == of_others.end();
  if (all_of_others && (shared_.has_forward_in(plan) || is_of_forward(plan)) &&
      !accumulation_.has_gathered(setup_.parameters)) {
    forget_forward();
    return;
  }
  if (!reached && (!is_of_forward(plan) || passes_by_all(plan))) {
    if (forward_.passed_by.size() == autograd::Tape::kBackwards) forward_.passed_by.erase(forward_.passed_by.begin());
    forward_.passed_by.emplace_back(plan.where(), plan.number());
    for (Forward::Nodes& each : forward_.nodes)
      each.passed_by = std::min(each.passed_by, plan.number());
    setup_.notify([&](ReducerObserver& each) { each.on_passed_by(plan); });
    return;
  }
  if (broken_) std::rethrow_exception(broken_);
  forward_.passed_by.clear();
  const bool held = round_waits_ && round_waits_();
  if (round_begins_ && !held) round_begins_(plan.where());
  // What was accumulated under no_sync is reduced even if this micro-batch adds nothing to it.
  const Forward::Nodes* const forward = forward_of(plan);
  Round::Start start{.where = plan.where(),
                     .plan = &plan,
                     .forward = forward ? forward->where : SourceLocation(),
                     .planned = std::move(planned),
                     .of_others = std::move(of_others),
                     .held = held};
  const bool absent = start.absent = !start.reaches_any() && !accumulation_.has_gathered(setup_.parameters);
  Round& round = start_round(std::move(start));
  if (absent) forward_.unreached_by.emplace(plan.where(), plan.number());
  for (Forward::Nodes& each : forward_.nodes)
    if (each.from == each.to || plan.holds_recorded(each.from, each.to)) each.passed_by = 0;
  if (setup_.follower.begins) setup_.follower.begins(round.planned());
  round.take_turns(LaunchOrder::of_this_thread(), forward ? forward->number : 0);
  round.begin();
}

// Whether the gradient was averaged and no step has used it yet.
bool Reducer::awaits_use(const Tensor& leaf) const {
  const int64_t position = find(leaf);
  if (position < 0 || accumulation_.local(static_cast<uint32_t>(position)).backwards > 0) return false;
  const autograd::AutogradMeta& meta = *autograd::meta(leaf);
  return meta.grad.defined() && meta.stamp.backwards > meta.stamp.backwards_used;
}

bool Reducer::is_wanted(std::span<const Tensor> leaves) const {
  if (!forward_.pending || forward_.passed_by.empty() || !syncs() || left_out_by() == 0) return false;
  // If a gradient awaits its use, the pending forward came after the backward of that gradient.
  return std::ranges::none_of(leaves, [&](const Tensor& leaf) { return leaf.defined() && awaits_use(leaf); });
}

uint64_t Reducer::left_out_by() const noexcept { return open_forward(forward_.passed_by.back().number()).passed_by; }

bool Reducer::is_meant(const TracedBackward& backward) const {
  return std::ranges::any_of(setup_.options.observers,
                             [&](const auto& each) { return each->is_meant(setup_.parameters, backward); });
}

TracedBackward Reducer::begin_wanted(std::span<Reducer* const> wanted) {
  if (broken_) std::rethrow_exception(broken_);
  const std::vector<TracedBackward> passed_by = std::exchange(forward_.passed_by, {});
  const auto cut_off = std::find_if(passed_by.rbegin(), passed_by.rend(),
                                    [&](const TracedBackward& each) { return is_meant(each); });
  const Forward::Nodes open = open_forward(passed_by.back().number());
  const auto first = std::find_if(passed_by.begin(), passed_by.end() - 1,
                                  [&](const TracedBackward& each) { return each.number() >= open.passed_by; });
  const TracedBackward& backward = cut_off != passed_by.rend() ? *cut_off : *first;
  if (round_begins_) round_begins_(backward.where());
  Round& round = start_round({.where = backward.where(),
                              .planned = std::vector<uint8_t>(setup_.count(), 0),
                              .of_others = shared_.share_out_among({wanted.data(), wanted.size()}),
                              .absent = !accumulation_.has_gathered(setup_.parameters)});
  forward_.unreached_by = backward;
  if (setup_.follower.begins) setup_.follower.begins(round.planned());
  round.take_turns(LaunchOrder::of_this_thread(), open.number);
  pass_over_forwards();  // the peers' backward
  round.begin();
  return backward;
}

// The peers ran one backward through all reducers that this rank's left out, whichever optimizers have their parameters.
// They send in the order of LaunchOrder, and end in construction order.
void Reducer::on_gradients_wanted(std::span<const Tensor> leaves) {
  const uint64_t backward = is_wanted(leaves) ? left_out_by() : 0;
  std::vector<Reducer*> wanted;
  LivingReducers::all().for_each([&](Reducer& each) {
    if (each.setup_.group != setup_.group) return;
    for (Forward::Nodes& forward : each.forward_.nodes)
      ++forward.uses;
    if (backward > 0 && each.is_wanted(leaves) && each.left_out_by() == backward) wanted.push_back(&each);
  });
  if (wanted.empty()) return pass_over_forwards();
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

void Reducer::on_grad_ready(uint32_t tag, bool defined) {
  if (setup_.is_elsewhere(tag)) return;
  if (round_) {
    round_->on_grad_ready(tag, defined);
  } else if (accumulation_.gathers()) {
    const autograd::AutogradMeta& meta = *autograd::meta(setup_.parameters[tag].tensor);
    if (defined) meta.grad.storage()->watch();
    accumulation_.add(tag, defined, meta.stamp);
  }
}

bool Reducer::looks_for_non_finite() const {
  return round_ && setup_.options.meter && setup_.options.meter->looks_for_non_finite();
}

void Reducer::on_non_finite(const char* op, SourceLocation where, DType dtype) {
  if (round_) setup_.options.meter->on_non_finite(op, where, dtype);
}

void Reducer::on_finish(const autograd::Plan& plan) {
  accumulation_.gather(false);
  if (!round_) return;
  const struct End {
    const Reducer& reducer;
    const autograd::Plan& plan;
    ~End() {
      reducer.setup_.notify([&](ReducerObserver& each) { each.on_backward_end(plan); });
    }
  } end{*this, plan};
  if (round_->is_held()) {
    try {
      round_begins_(plan.where());
    } catch (...) {  // nothing was sent
      end_round();
      clear_gradients();
      throw;
    }
  }
  const TracedBackward backward(plan);
  try {
    finish_round(&backward);
  } catch (const CollectiveError&) {  // an observer may end in one
    setup_.notify([](ReducerObserver& each) { each.on_group_error(); });
    throw;
  }
}

void Reducer::on_refused() noexcept {
  // No plan will come, but peers may be waiting for this backward.
  if (broken_ || !forward_.pending || !syncs() || setup_.parameters.empty() || !backward_may_concern(*this)) return;
  try {
    setup_.notify([](ReducerObserver& each) { each.on_refused(); });
    const bool held = round_waits_ && round_waits_();
    if (round_begins_ && !held) round_begins_({});
    Round& round = start_round({.planned = std::vector<uint8_t>(setup_.count(), 0), .failed = true, .held = held});
    // As on the peers when a backward runs through several wrappers: all buckets come before the first report.
    round.take_turns(LaunchOrder::of_this_thread(), open_forward().number);
    round.begin();
  } catch (...) {
    give_up();
  }
}

void Reducer::on_error(const autograd::Plan* plan, std::exception_ptr error) noexcept {
  std::string failure = "unknown error";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    failure = exception.what();
  } catch (...) {
  }
  accumulation_.gather(false);
  try {
    if (broken_) {
      end_round();
      return;
    }
    if (!round_) return;
    LaunchOrder::of_this_thread().fail();
    round_->fail();
    if (round_->is_held()) round_begins_(round_->where());
    round_->finish();
    if (!round_->is_error()) return conclude();
    const auto backward = plan ? std::optional<TracedBackward>(*plan) : std::nullopt;
    report(backward ? &*backward : nullptr, failure);
  } catch (const ReductionError&) {
    // Backward rethrows its own error, which says more.
  } catch (...) {
    give_up();
  }
}

void Reducer::shadow_round(SourceLocation where) {
  if (broken_) std::rethrow_exception(broken_);
  clear_gradients();
  start_round({.where = where, .planned = std::vector<uint8_t>(setup_.count(), 0), .absent = true, .joined = true});
  or_give_up([&] { round_->begin(); });
  finish_round(nullptr);
}

template <class F>
void Reducer::or_give_up(F&& f) {
  try {
    f();
  } catch (...) {
    give_up();
    throw;
  }
}

void Reducer::finish_round(const TracedBackward* backward) {
  or_give_up([&] { round_->finish(); });
  if (round_->is_error()) return report(backward, "");
  conclude();
}

void Reducer::settle() {
  round_->settle_all();
  if (round_->outcome().present == 0) return;
  forget_forward();
  last_.users = round_->outcome().users;
  if (setup_.options.meter) setup_.options.meter->settle(*round_);
  accumulation_.all_reduced(setup_.parameters);
  shared_.reduced(last_.users);
}

void Reducer::tell_follower_of_end(bool sound) {
  if (setup_.follower.ended) or_give_up([&] { setup_.follower.ended(sound); });
}

void Reducer::remember(bool sound) {
  const Outcome& outcome = round_->outcome();
  if (outcome.present == 0 && outcome.failed == 0) return;
  ReducedBackward& backward = last_.backward;
  backward.number = round_->number();
  backward.where = round_->where();
  backward.sound = sound;
  backward.sent = round_->hook_sends();
  backward.whole = outcome.failed == 0 && outcome.joined == 0 && outcome.same_round;
  backward.used.resize(setup_.count());
  backward.buckets.resize(setup_.count());
  for (uint32_t i = 0; i < setup_.count(); ++i) {
    backward.used[i] = !round_->joined() && round_->uses(i);
    backward.buckets[i] = buckets_.slot(i).bucket;
    if (outcome.users[i] > 0) last_.last_used[i] = backward.number;
  }
  backward.users = outcome.users;
  backward.ready_order = round_->ready_order();
}

void Reducer::conclude() {
  const bool present = round_->outcome().present > 0;
  const bool joined = round_->joined();
  const SourceLocation where = round_->where();
  if (setup_.options.static_graph && recorded_.used.empty() && present && !joined) {
    for (uint32_t i = 0; i < setup_.count(); ++i)
      recorded_.used.push_back(round_->uses(i));
    recorded_.where = where;
  }
  remember(true);
  settle();
  tell_follower_of_end(true);
  std::exception_ptr failure;  // of an observer: the steps that all ranks take together go on
  if (present) {
    setup_.notify([&](ReducerObserver& each) {
      try {
        each.on_finish(*round_);
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    });
    // Earlier backwards and this one together have reached every parameter.
    if (std::find(setup_.covered.begin(), setup_.covered.end(), 1) != setup_.covered.end()) take_kept_back();
  }
  end_round();
  if (present && !buckets_.is_rebuilt()) rebuild(where);
  if (failure) std::rethrow_exception(failure);
}

void Reducer::rebuild(SourceLocation where) {
  or_give_up([&] {  // the peers may have cut different buckets
    if (buckets_.rebuild(last_.ready_order, where)) accumulation_.pass_over_writes(setup_.parameters);
  });
}

// Without observers.
std::exception_ptr Reducer::plain_error() const {
  const Outcome& outcome = round_->outcome();
  const char* const what = outcome.failed > 0    ? "the backward of a rank has failed"
                           : !outcome.same_round ? "the ranks are in different backwards"
                           : outcome.changed > 0 ? "a rank uses other parameters than in the first backward"
                           : outcome.rejected    ? "an observer does not trust the gradients"
                                                 : "some parameters were not ready on every rank";
  return std::make_exception_ptr(ReductionError(
      fmt::format("{}: {} in backward {}", setup_.title(), what, round_->number()), {}, round_->where()));
}

void Reducer::report(const TracedBackward* backward, const std::string& failure) {
  std::exception_ptr error;
  try {
    setup_.notify([&](ReducerObserver& each) {
      if (!error) error = each.on_error(*round_, backward, failure);
    });
  } catch (const DistError&) {
    error = broken_ = std::current_exception();
    setup_.notify([](ReducerObserver& each) { each.on_group_error(); });
  }
  if (!error) error = plain_error();
  const Outcome& outcome = round_->outcome();
  const bool is_mean = outcome.failed == 0 && outcome.same_round && !outcome.rejected;
  const bool waits = setup_.options.report_at == ReducerOptions::ReportAt::NextForward && is_mean && !broken_;
  remember(false);
  if (waits) {
    settle();
    keep_back(error);
  }
  if (!broken_) tell_follower_of_end(waits);
  end_round();
  if (waits) return;
  clear_gradients();
  std::rethrow_exception(error);
}

void Reducer::keep_back(std::exception_ptr error) {
  const Outcome& outcome = round_->outcome();
  const int participants = setup_.group->size() - outcome.joined;
  for (uint32_t i = 0; i < setup_.count(); ++i) {
    setup_.covered[i] = outcome.changed == 0 && (setup_.covered[i] || outcome.users[i] == participants);
    setup_.reached[i] = setup_.reached[i] || round_->uses(i);
  }
  kept_back_ = std::move(error);
}

std::exception_ptr Reducer::take_kept_back() noexcept {
  std::fill(setup_.covered.begin(), setup_.covered.end(), uint8_t{0});
  std::fill(setup_.reached.begin(), setup_.reached.end(), uint8_t{0});
  return std::exchange(kept_back_, nullptr);
}

void Reducer::give_up() noexcept {
  broken_ = std::current_exception();
  setup_.notify([](ReducerObserver& each) { each.on_group_error(); });
  if (setup_.follower.broken) setup_.follower.broken();
  end_round();
  clear_gradients();
}

void Reducer::end_round() noexcept {
  if (!round_) return;
  last_.collectives += round_->collectives();
  last_.ready_order = std::move(round_->ready_order());
  round_.reset();
}

void Reducer::on_update(const autograd::Update& update) {
  if (!optimizer_step_) return;
  setup_.notify([&](ReducerObserver& each) { each.on_step(update, accumulation_.local_backwards()); });
  try {
    optimizer_step_(update);
  } catch (const ConsistencyError&) {
    on_update_end();
    throw;
  }
}

void Reducer::on_update_end() noexcept {
  setup_.notify([](ReducerObserver& each) { each.on_step_end(); });
}

}  // namespace brigade::dist
