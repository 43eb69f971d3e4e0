// One reduced backward: from the plan to the averaged gradients.
#include <brigade/dist/reducer/reducer.h>

#include <brigade/autograd/meta.h>
#include <brigade/autograd/write_log.h>
#include <brigade/core/factory.h>
#include <brigade/dist/diagnosis/spread.h>
#include <brigade/kernels/bucket.h>
#include <brigade/kernels/elementwise.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace brigade::dist {

namespace {

// log2 of a sum of squares; the payload has room for no more. 0 says "no gradient".
double logarithm(double sum) { return sum > 0 && std::isfinite(sum) ? std::log2(sum) : 0; }

}  // namespace

std::string Reducer::describe(uint32_t index) const {
  return fmt::format("bucket {} of DDP({})", index, options_.module_name);
}

void Reducer::enter_no_sync(SourceLocation where) noexcept {
  ++no_sync_depth_;
  no_sync_where_ = where;
}

void Reducer::prepare_for_forward(int64_t rows) {
  if (kept_back_) std::rethrow_exception(std::exchange(kept_back_, nullptr));
  forward_began_ = now_ns();
  if (!syncs()) return;
  forward_pending_ = true;
  rows_ = rows;
}

void Reducer::on_plan(const autograd::Plan& plan) {
  std::fill(planned_.begin(), planned_.end(), uint8_t{0});
  bool reached = false;
  plan.for_each_observed(this, [&](uint32_t tag) { planned_[tag] = reached = true; });
  if (reached) {
    heard_.push_back(plan.number());
    if (heard_.size() > 16) heard_.erase(heard_.begin());
  }
  if (!syncs()) {
    state_ = reached ? State::Accumulating : State::Idle;
    return;
  }
  // A backward that reaches nothing of ours, with no forward of ours before it, is none of our business.
  if (broken_ || parameters_.empty() || (!reached && !forward_pending_)) {
    state_ = State::Idle;
    return;
  }
  if (options_.diagnosis) look_at_loss(plan);
  if (round_begins_) round_begins_();
  absent_ = !reached;
  begin_round(plan.where(), false);
}

void Reducer::shadow_round(SourceLocation where) {
  clear_gradients();
  std::fill(planned_.begin(), planned_.end(), uint8_t{0});
  absent_ = joined_ = true;
  begin_round(where, false);
  finish_round();
  if (is_error(outcome_)) {
    report(nullptr, "");
  } else {
    conclude();
  }
  clear_gradients();
}

void Reducer::begin_round(SourceLocation where, bool failed) {
  state_ = State::Reducing;
  backward_where_ = where;
  failed_ = failed;
  next_bucket_ = next_complete_ = 0;
  ready_order_.clear();
  stale_.clear();
  non_finite_.clear();
  own_sums_.assign(parameters_.size(), 0);
  outcome_ = {};
  outcome_.users.assign(parameters_.size(), 0);
  ++round_;
  hook_sends_ = !hook_ || hook_->begin_round(round_);
  changed_ = false;
  for (size_t i = 0; i < recorded_.size() && !joined_ && !failed_; ++i)
    changed_ = changed_ || (recorded_[i] != 0) != (planned_[i] || used_[i]);

  events_ = {};
  events_.round = round_;
  events_.forward_began = std::exchange(forward_began_, 0);
  events_.began = now_ns();
  events_.ready.assign(parameters_.size(), 0);
  for (const Bucket& bucket : buckets_) {
    BucketEvents& events = events_.buckets.emplace_back();
    events.bytes = static_cast<int64_t>(bucket.payload.whole().nbytes());
  }
  for (Bucket& bucket : buckets_) {
    bucket.pending = 0;
    bucket.work.reset();
    bucket.tail_work.reset();
    bucket.completed = bucket.settled = bucket.received = false;
    bucket.sum_of_squares = 0;
    bucket.measured.clear();
    bucket.to_copy.clear();
    for (const uint32_t parameter : bucket.layout.parameters)
      bucket.pending += planned_[parameter];
    // A delayed bucket waits for its trigger as well.
    if (options_.trigger && delayed_[bucket.layout.parameters.front()] && planned_[*options_.trigger]) ++bucket.pending;
  }
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    if (!planned_[i]) prepare_unplanned(i);
  }
  launch_ready();
}

void Reducer::prepare_unplanned(uint32_t parameter) {
  autograd::AutogradMeta& meta = autograd::ensure_meta(parameters_[parameter].tensor);
  const Tensor& view = slots_[parameter].view;
  if (!meta.grad.defined()) used_[parameter] = 0;  // cleared since
  set_flag(parameter, used_[parameter]);
  if (!meta.grad.defined()) {
    kernels::fill(view, 0.0);
    return;
  }
  const Tensor gradient = meta.grad;
  take_gradient(parameter, true);
  // What an earlier step left must come out unchanged if no rank used the parameter; the mean of equal values may
  // differ in the last bit.
  if (!used_[parameter]) {
    stale_.emplace_back(parameter, kernels::clone(gradient));
  } else {
    measure(parameter);
    warn_of_early_write(parameter);
  }
}

void Reducer::set_flag(uint32_t parameter, double value) {
  const Slot& slot = slots_[parameter];
  buckets_[slot.bucket].payload.set_flag(slot.index, value);
}

// Puts the gradient into its slot, if it is not there.
void Reducer::take_gradient(uint32_t parameter, bool defined) {
  autograd::AutogradMeta& meta = *autograd::meta(parameters_[parameter].tensor);
  const Tensor& view = slots_[parameter].view;
  if (!defined || !meta.grad.defined()) {
    kernels::fill(view, 0.0);
  } else if (!meta.grad.is_same(view)) {
    Bucket& bucket = buckets_[slots_[parameter].bucket];
    if (bucket.payload.on_device() && meta.grad.dtype() == view.dtype() && meta.grad.is_contiguous()) {
      // All of a bucket in one launch.
      bucket.to_copy.resize(bucket.layout.parameters.size());
      bucket.to_copy[slots_[parameter].index] = meta.grad;
    } else {
      kernels::copy(view, meta.grad);  // its own memory, or put there by hand while backward ran
    }
    if (options_.gradient_as_bucket_view) meta.grad = view;
  }
}

void Reducer::measure(uint32_t parameter) {
  if (!options_.diagnosis) return;
  const Slot& slot = slots_[parameter];
  Bucket& bucket = buckets_[slot.bucket];
  if (bucket.payload.on_device()) {
    bucket.measured.resize(bucket.layout.parameters.size());
    bucket.measured[slot.index] = slot.view.numel();
    return;
  }
  const double sum = kernels::sum_of_squares(slot.view);
  own_sums_[parameter] = sum;
  bucket.sum_of_squares += sum;
  if (!std::isfinite(sum) && kernels::has_non_finite(slot.view)) non_finite_.push_back(parameter);
}

void Reducer::on_grad_ready(uint32_t tag, bool defined) {
  if (state_ == State::Idle) return;
  LocalGradient& local = local_[tag];
  autograd::AutogradMeta& meta = *autograd::meta(parameters_[tag].tensor);
  if (state_ == State::Accumulating) {
    used_[tag] = used_[tag] || defined;
    if (!defined) return;
    if (meta.stamp.backwards <= 1) local.backwards = 0;  // cleared since
    if (local.backwards++ == 0) local.writes_at_accumulation = autograd::writes_so_far();
    local.where = backward_where_ = meta.stamp.last_backward_at;
    return;
  }
  if (!defined && !used_[tag]) {
    // The plan saw a path, and no gradient came along it (a cut that only backward could see).
    planned_[tag] = 0;
    prepare_unplanned(tag);
  } else {
    take_gradient(tag, true);
    measure(tag);
    set_flag(tag, 1);
    if (local.backwards > 0) warn_of_early_write(tag);
    ready_order_.push_back(tag);
    events_.ready[tag] = now_ns();
  }
  one_less_pending(slots_[tag].bucket);
  if (options_.trigger == tag) {
    for (uint32_t b = 0; b < buckets_.size(); ++b) {
      if (delayed_[buckets_[b].layout.parameters.front()]) one_less_pending(b);
    }
  }
  launch_ready();
  poll();
}

void Reducer::one_less_pending(uint32_t bucket) { --buckets_[bucket].pending; }

void Reducer::launch_ready() {
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].pending == 0) {
    // A rank that reaches nothing sends the first bucket only: if no rank reaches anything, that was all
    // (finish_round).
    if (absent_ && next_bucket_ == 1) return;
    launch(next_bucket_);  // may throw: then it is not launched
    ++next_bucket_;
  }
}

GradBucket Reducer::as_grad_bucket(uint32_t index) const {
  const Bucket& bucket = buckets_[index];
  std::vector<Tensor> parameters;
  std::vector<Tensor> gradients;
  for (const uint32_t parameter : bucket.layout.parameters) {
    parameters.push_back(parameters_[parameter].tensor);
    gradients.push_back(slots_[parameter].view);
  }
  return GradBucket(index, index + 1 == buckets_.size(), bucket.payload.gradients(), std::move(parameters),
                    std::move(gradients));
}

void Reducer::launch(uint32_t index) {
  Bucket& bucket = buckets_[index];
  Payload& payload = bucket.payload;
  BucketEvents& events = events_.buckets[index];
  const int64_t now = now_ns();
  events.launched = now;
  for (const uint32_t parameter : bucket.layout.parameters)
    events.filled = std::max(events.filled, events_.ready[parameter]);
  if (events.filled == 0) events.filled = now;

  payload.set(Word::Present, absent_ ? 0 : 1);
  payload.set(Word::Failed, failed_ ? 1 : 0);
  payload.set(Word::Joined, joined_ ? 1 : 0);
  payload.set(Word::Changed, changed_ ? 1 : 0);
  payload.set_with_square(Word::Round, payload.countable(round_));
  if (!bucket.to_copy.empty()) kernels::bucket_flatten(payload.whole(), bucket.to_copy, bucket.layout.offsets, 1.0);
  bucket.to_copy.clear();
  const bool silent = !options_.diagnosis || absent_ || failed_;
  if (silent) bucket.measured.clear();
  const bool measured = payload.on_device() ? !bucket.measured.empty() : bucket.sum_of_squares != 0;
  payload.set(Word::Silent, silent || !measured ? 1 : 0);
  payload.set(Word::NonFinite, non_finite_.empty() && !non_finite_loss_ ? 0 : 1);
  payload.set_with_square(Word::Time, static_cast<double>(now - events_.began) * 1e-6);
  payload.set_with_square(Word::Norm, logarithm(bucket.sum_of_squares));
  payload.set_with_square(Word::Rows, static_cast<double>(std::min<int64_t>(rows_, 2048)));
  payload.send(bucket.measured, !non_finite_.empty() || non_finite_loss_);

  const std::string description = describe(index);
  const CollectiveOptions options{.op = ReduceOp::Avg, .description = description, .iteration = round_};
  if (!hook_) {
    bucket.work = group_->all_reduce(payload.whole(), options, backward_where_);
    ++collectives_;
  } else if (hook_sends_) {
    if (options_.diagnosis) payload.send_probe();
    bucket.work = hook_->run(*group_, as_grad_bucket(index), options, backward_where_);
    if (!bucket.work) {
      throw DistError(
          fmt::format("the communication hook {} returned no Work for {}; return that of a collective, or "
                      "completed_work()",
                      hook_->name(), description));
    }
    bucket.tail_work = group_->all_reduce(
        payload.tail(), {.op = ReduceOp::Avg, .description = "flags of " + description, .iteration = round_},
        backward_where_);
    ++collectives_;
  } else {
    bucket.work = completed_work();  // this rank's own gradients; it speaks for all
  }
}

void Reducer::poll() {
  group_->progress();
  while (next_complete_ < next_bucket_) {
    const Bucket& bucket = buckets_[next_complete_];
    if (!bucket.work->is_completed() || (bucket.tail_work && !bucket.tail_work->is_completed())) return;
    complete(next_complete_++);
  }
}

// Flags and words, once they are reduced.
void Reducer::receive(Bucket& bucket) {
  if (std::exchange(bucket.received, true)) return;
  Payload& payload = bucket.payload;
  Work& reduced = bucket.tail_work ? *bucket.tail_work : *bucket.work;
  payload.receive(reduced);
  for (size_t k = 0; k < bucket.measured.size(); ++k) {
    if (bucket.measured[k] == 0) continue;
    const uint32_t parameter = bucket.layout.parameters[k];
    own_sums_[parameter] = payload.sum_of_squares(k);
    if (!std::isfinite(own_sums_[parameter])) non_finite_.push_back(parameter);
  }
}

void Reducer::complete(uint32_t index) {
  Bucket& bucket = buckets_[index];
  if (bucket.completed) return;
  BucketEvents& events = events_.buckets[index];
  events.wait_began = now_ns();
  bucket.work->wait();
  receive(bucket);
  events.finished = events.wait_ended = now_ns();
  if (!hook_) {  // what a hook sends is not the payload, and may be several collectives
    const WorkTimes times = bucket.work->times();
    events.arrived = times.arrived;
    events.reduced = times.reduced;
  }
  bucket.work.reset();
  bucket.tail_work.reset();
  bucket.completed = true;

  const Payload& payload = bucket.payload;
  const int size = group_->size();
  for (size_t k = 0; k < bucket.layout.parameters.size(); ++k)
    outcome_.users[bucket.layout.parameters[k]] = payload.flag_count(k, size);
  outcome_.present = std::max(outcome_.present, payload.count(Word::Present, size));
  outcome_.failed = std::max(outcome_.failed, payload.count(Word::Failed, size));
  outcome_.joined = std::max(outcome_.joined, payload.count(Word::Joined, size));
  outcome_.changed = std::max(outcome_.changed, payload.count(Word::Changed, size));
  outcome_.non_finite = std::max(outcome_.non_finite, payload.count(Word::NonFinite, size));
  if (hook_sends_ && !payload.all_equal(Word::Round, payload.countable(round_))) outcome_.same_round = false;
  if (hook_sends_ && payload.count(Word::Silent, size) == 0) {
    outcome_.late = outcome_.late || may_have_slow_rank(payload.mean(Word::Time), payload.variance(Word::Time), size);
    outcome_.outlier =
        outcome_.outlier || distance_of_one(payload.variance(Word::Norm), size) > 9;  // 22 times the norm
    const double rows = payload.mean(Word::Rows);
    outcome_.uneven = outcome_.uneven || (size > 1 && payload.variance(Word::Rows) > 1e-3 * rows * rows);
    // Looking at the result would wait for a device: later, when that is idle.
    if (!payload.on_device()) check_hook_result(bucket, index);
  }
  if (!bucket_reduced_ || !is_sound(outcome_, bucket.layout.parameters)) return;
  settle(bucket);
  std::vector<uint32_t> with_gradient;
  for (const uint32_t parameter : bucket.layout.parameters) {
    if (autograd::meta(parameters_[parameter].tensor)->grad.defined()) with_gradient.push_back(parameter);
  }
  bucket_reduced_(with_gradient);
}

void Reducer::finish_round() {
  if (absent_) {
    // If nobody reached anything, every rank stops after the first bucket.
    if (next_bucket_ == 0) {
      launch(0);
      next_bucket_ = 1;
    }
    Bucket& first = buckets_.front();
    if (first.tail_work) {
      receive(first);
    } else {
      complete(0);
    }
    const int size = group_->size();
    if (first.payload.count(Word::Present, size) == 0 && first.payload.count(Word::Failed, size) == 0) {
      complete(0);
      return;
    }
  }
  // All are posted before the first is waited for: what a hook posts while it is waited for comes after.
  while (next_bucket_ < buckets_.size()) {
    launch(next_bucket_);
    ++next_bucket_;
  }
  for (uint32_t i = 0; i < buckets_.size(); ++i)
    complete(i);
  for (uint32_t i = 0; i < buckets_.size() && hook_sends_; ++i) {
    const Payload& payload = buckets_[i].payload;
    if (payload.on_device() && payload.count(Word::Silent, group_->size()) == 0) check_hook_result(buckets_[i], i);
  }
}

bool Reducer::is_sound(const Outcome& outcome, std::span<const uint32_t> parameters) const {
  if (outcome.failed > 0 || !outcome.same_round || outcome.changed > 0 || !outcome.hooks.empty()) return false;
  if (options_.find_unused_parameters || options_.static_graph || outcome.present == 0) return true;
  const int participants = group_->size() - outcome.joined;
  return std::all_of(parameters.begin(), parameters.end(), [&](uint32_t parameter) {
    return !expected_[parameter] || outcome.users[parameter] == participants;
  });
}

bool Reducer::is_error(const Outcome& outcome) const {
  return !is_sound(outcome, {}) || std::any_of(buckets_.begin(), buckets_.end(), [&](const Bucket& bucket) {
    return !is_sound(outcome, bucket.layout.parameters);
  });
}

void Reducer::settle(Bucket& bucket) {
  if (bucket.settled || outcome_.present == 0) return;
  bucket.settled = true;
  const int participants = group_->size() - outcome_.joined;
  if (divide_by_participants_ && participants > 0 && participants < group_->size())
    kernels::scale_inplace(bucket.payload.gradients(), static_cast<double>(group_->size()) / participants);
  std::vector<Tensor> to_fill;  // on a device: per slot, all in one launch
  for (const uint32_t parameter : bucket.layout.parameters) {
    if (outcome_.users[parameter] == 0) continue;
    autograd::AutogradMeta& meta = *autograd::meta(parameters_[parameter].tensor);
    const Tensor& view = slots_[parameter].view;
    if (options_.gradient_as_bucket_view) {
      meta.grad = view;
    } else if (bucket.payload.on_device() && (!meta.grad.defined() || meta.grad.is_contiguous())) {
      if (!meta.grad.defined()) meta.grad = empty_like(view);
      to_fill.resize(bucket.layout.parameters.size());
      to_fill[slots_[parameter].index] = meta.grad;
    } else if (meta.grad.defined()) {
      kernels::copy(meta.grad, view);
    } else {
      meta.grad = kernels::clone(view);
    }
    // A rank that did not use it holds a gradient of its peers: as good as one of its own.
    if (meta.stamp.backwards == 0) {
      meta.stamp.backwards = 1;
      meta.stamp.last_backward = heard_.empty() ? 0 : heard_.back();
      meta.stamp.last_backward_at = backward_where_;
    }
    meta.stamp.by_hand = false;
    meta.grad.bump_version();
  }
  if (!to_fill.empty())
    kernels::bucket_unflatten(bucket.payload.whole(), Tensor(), to_fill, bucket.layout.offsets, 1.0);
}

void Reducer::settle_all() {
  for (Bucket& bucket : buckets_)
    settle(bucket);
  for (const auto& [parameter, gradient] : stale_) {
    if (outcome_.present > 0 && outcome_.users[parameter] > 0) continue;
    kernels::copy(slots_[parameter].view, gradient);
  }
  if (outcome_.present == 0) return;
  forward_pending_ = false;
  last_users_ = outcome_.users;
  std::fill(used_.begin(), used_.end(), uint8_t{0});
  const uint64_t writes = autograd::writes_so_far();
  for (LocalGradient& local : local_) {
    local.backwards = 0;
    local.writes_at_reduction = writes;
  }
}

void Reducer::reset() noexcept {
  state_ = State::Idle;
  absent_ = failed_ = joined_ = false;
  non_finite_loss_ = false;
  device_losses_.clear();
  stale_.clear();
  for (Bucket& bucket : buckets_) {
    bucket.work.reset();
    bucket.tail_work.reset();
  }
}

void Reducer::conclude() {
  if (options_.static_graph && recorded_.empty() && outcome_.present > 0 && !joined_) {
    for (uint32_t i = 0; i < parameters_.size(); ++i)
      recorded_.push_back(planned_[i] || used_[i]);
    recorded_at_ = to_string(backward_where_);
  }
  settle_all();
  if (outcome_.present > 0) advise();
  const bool present = outcome_.present > 0;
  if (present) {
    events_.backward = to_string(backward_where_);
    events_.ended = now_ns();
    for (uint32_t b = 0; b < buckets_.size(); ++b)
      events_.buckets[b].parameters = buckets_[b].layout.parameters;
    events_.rebuilt = !rebuilt_ && !joined_;
    if (!joined_) timeline_.add(std::move(events_));
  }
  reset();
  if (present && !rebuilt_) rebuild();
}

void Reducer::on_finish(const autograd::Plan& plan) {
  if (state_ != State::Reducing) {
    state_ = State::Idle;
    return;
  }
  events_.compute_ended = now_ns();
  try {
    finish_round();
  } catch (...) {
    // The group itself failed (a peer died, a timeout): nothing that is in the buckets can be trusted.
    broken_ = true;
    reset();
    clear_gradients();
    throw;
  }
  if (is_error(outcome_)) {
    report(&plan, "");
  } else {
    conclude();
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
  try {
    if (broken_) {
      reset();
      return;
    }
    if (state_ != State::Reducing) {
      // The roots were unusable, so there was no plan. Peers may be waiting for this backward nevertheless.
      if (plan || !forward_pending_ || !syncs() || parameters_.empty()) {
        state_ = State::Idle;
        return;
      }
      std::fill(planned_.begin(), planned_.end(), uint8_t{0});
      absent_ = false;
      begin_round({}, true);
    }
    // The peers wait for the rest of our buckets: they get them, marked as failed. What was launched before looks sound
    // to them, so the verdict is theirs and ours alike.
    failed_ = true;
    absent_ = false;
    finish_round();
    if (is_error(outcome_)) {
      report(plan, failure);
    } else {
      conclude();
    }
  } catch (const ReductionError&) {
    // Backward rethrows its own error, which says more.
  } catch (...) {
    broken_ = true;
    reset();
  }
}

void Reducer::on_update(const autograd::Update& update) {
  if (optimizer_step_) optimizer_step_(update);
}

}  // namespace brigade::dist
