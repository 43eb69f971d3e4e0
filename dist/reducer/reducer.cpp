// Implements the reducer as a listener: decides which backwards are reduced, and keeps their results.
#include <brigade/dist/reducer/reducer.h>

#include <brigade/autograd/detail/findings.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/tape.h>
#include <brigade/core/detail/living.h>
#include <brigade/dist/errors/collective.h>
#include <brigade/dist/reducer/launch_order.h>

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
  setup.register_observers();
  return setup;
}

uint64_t next_number() noexcept {
  static std::atomic<uint64_t> reducers{0};
  return ++reducers;
}

using LivingReducers = brigade::detail::Living<Reducer>;

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
  if (last_.rounds > 0)
    throw DistError("register_comm_hook: {} has reduced {} backwards already; register the hook before", setup_.title(),
                    last_.rounds);
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

void Reducer::set_join(JoinPolicy* policy) {
  if (setup_.join && !policy) shared_.note_end_of_join();
  setup_.join = policy;
}

void Reducer::clear_gradients() {
  for (uint32_t i = 0; i < setup_.count(); ++i)
    if (!setup_.is_elsewhere(i)) autograd::meta(setup_.parameters[i].tensor)->clear();
  accumulation_.forget_all();
  forwards_.forget();
}

void Reducer::need_no_forwards() noexcept {
  forwards_.need_none();
  shared_.pass_over_empty_forwards();
}

void Reducer::prepare_for_forward(int64_t rows, SourceLocation where) {
  setup_.notify([](ReducerObserver& each) { each.on_forward(); });
  if (kept_back_) std::rethrow_exception(take_kept_back());
  shared_.begin_forward();
  if (!accumulation_.syncs()) return;
  if (broken_) std::rethrow_exception(broken_);
  forwards_.begin(rows, where);
}

void Reducer::end_forward(bool failed) noexcept {
  setup_.notify([](ReducerObserver& each) { each.on_forward_end(); });
  shared_.end_forward(failed);
  forwards_.end(failed);
}

bool Reducer::announce(SourceLocation where) {
  if (!setup_.join) return false;
  if (setup_.join->waits_for_end()) return true;
  setup_.join->before_round(where);
  return false;
}

Round& Reducer::start_round(Round::Start start) {
  start.number = ++last_.rounds;
  shared_.take_unclaimed(start.of_others);
  if (!setup_.join) start.averages = shared_.averages(start.number);
  start.rows = forwards_.rows();
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
  accumulation_.gather(reached && !accumulation_.syncs());
  // A backward that reaches nothing of this reducer, with no pending forward, does not concern this group.
  if (!accumulation_.syncs() || setup_.parameters.empty() || (!reached && !forwards_.are_pending())) return;
  if (!reached && reaches_another(plan)) forwards_.note_others_reached();
  const bool all_of_others = !of_others.empty() && std::ranges::find(of_others, OfOthers::No) == of_others.end();
  if (all_of_others && (shared_.has_forward_in(plan) || forwards_.may_be_in(plan)) &&
      !accumulation_.has_gathered(setup_.parameters)) {
    forwards_.forget();
    return;
  }
  if (!reached && (!forwards_.may_be_in(plan) || passes_by_all(plan))) {
    forwards_.pass_by(plan);
    setup_.notify([&](ReducerObserver& each) { each.on_passed_by(plan); });
    return;
  }
  if (broken_) std::rethrow_exception(broken_);
  const bool held = announce(plan.where());
  // What was accumulated under no_sync is reduced even if this micro-batch adds nothing to it.
  const Forwards::Forward* const forward = forwards_.of(plan);
  Round::Start start{.where = plan.where(),
                     .plan = &plan,
                     .forward = forward ? forward->where : SourceLocation(),
                     .planned = std::move(planned),
                     .of_others = std::move(of_others),
                     .held = held};
  const bool absent = start.absent = !start.reaches_any() && !accumulation_.has_gathered(setup_.parameters);
  Round& round = start_round(std::move(start));
  if (absent) forwards_.set_unreached_by({plan.where(), plan.number()});
  forwards_.take_part(plan);
  if (setup_.follower.begins) setup_.follower.begins(round.start().planned);
  round.take_turns(LaunchOrder::of_this_thread(), forward ? forward->number : 0);
  round.begin();
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
  if (round_->start().held) {
    try {
      setup_.join->before_round(plan.where());
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
  forwards_.forget();
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
  backward.sent = round_->traffic().is_sent;
  backward.whole = outcome.failed == 0 && outcome.joined == 0 && outcome.same_round;
  backward.used.resize(setup_.count());
  backward.buckets.resize(setup_.count());
  for (uint32_t i = 0; i < setup_.count(); ++i) {
    backward.used[i] = !round_->start().joined && round_->uses(i);
    backward.buckets[i] = buckets_.slot(i).bucket;
    if (outcome.users[i] > 0) last_.last_used[i] = backward.number;
  }
  backward.users = outcome.users;
  backward.ready_order = round_->ready_order();
}

void Reducer::conclude() {
  const bool present = round_->outcome().present > 0;
  const bool joined = round_->start().joined;
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

void Reducer::end_round() noexcept {
  if (!round_) return;
  last_.collectives += round_->traffic().collectives;
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
