#include <brigade/dist/reducer.h>

#include <brigade/autograd/meta.h>
#include <brigade/core/view.h>
#include <brigade/dist/diagnosis/report.h>
#include <brigade/kernels/elementwise.h>

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace brigade::dist {

namespace {

// Control words behind the flags. The round travels as r and r * r: all ranks are in the same round exactly when both
// means equal this rank's own values, since the variance is then zero.
enum Control : int { kPresent, kFailed, kRound, kRoundSquared, kControlWords };

// Rounds are counted modulo a number whose square is exact in the dtype.
double round_in_payload(uint64_t round, DType dtype) {
  return static_cast<double>(round % (is_half(dtype) ? 8 : 2048));
}

void write_word(const Tensor& tail, int64_t position, double value) {
  visit_floating(tail.dtype(), "flags", [&]<class T>() {
    static_cast<T*>(tail.raw_data())[position] = static_cast<T>(static_cast<compute_type<T>>(value));
  });
}

double read_word(const Tensor& tail, int64_t position) {
  return visit_floating(tail.dtype(), "flags", [&]<class T>() {
    return static_cast<double>(static_cast<compute_type<T>>(static_cast<const T*>(tail.raw_data())[position]));
  });
}

}  // namespace

Reducer::Reducer(std::vector<NamedParameter> parameters, ProcessGroupPtr group, ReducerOptions options)
    : parameters_(std::move(parameters)), group_(std::move(group)), options_(std::move(options)) {
  std::vector<ParameterInfo> infos;
  std::vector<uint32_t> order;
  for (const NamedParameter& parameter : parameters_)
    infos.push_back({parameter.tensor.numel(), parameter.tensor.dtype()});
  // The last layers finish first in backward: start from the reverse of the registration order.
  for (uint32_t i = static_cast<uint32_t>(parameters_.size()); i-- > 0;)
    order.push_back(i);
  planned_.resize(parameters_.size());
  used_.resize(parameters_.size());
  for (const NamedParameter& parameter : parameters_) {
    if (!autograd::grad_target(parameter.tensor).defined()) continue;
    throw ValueError(fmt::format(
        "DDP({}): the gradient of `{}` is managed by another wrapper already; destroy that one before wrapping again",
        options_.module_name, parameter.name));
  }
  build(assign_buckets(infos, order, options_.limits));
  for (uint32_t i = 0; i < parameters_.size(); ++i)
    autograd::observe(parameters_[i].tensor, *this, i);
}

Reducer::~Reducer() {
  for (const NamedParameter& parameter : parameters_) {
    autograd::stop_observing(parameter.tensor, *this);
    autograd::set_grad_target(parameter.tensor, Tensor());
  }
}

void Reducer::build(std::vector<BucketLayout> layouts) {
  std::vector<Bucket> old = std::move(buckets_);
  buckets_.clear();
  slots_.assign(parameters_.size(), {});
  for (BucketLayout& layout : layouts) {
    Bucket bucket;
    const auto flags = static_cast<int64_t>(layout.parameters.size());
    bucket.buffer = group_->allocate(layout.gradient_numel + flags + kControlWords, layout.dtype);
    kernels::fill(bucket.buffer, 0.0);  // padding is reduced too and must stay finite
    bucket.tail = view::slice(bucket.buffer, 0, layout.gradient_numel, layout.gradient_numel + flags + kControlWords);
    for (uint32_t index = 0; index < layout.parameters.size(); ++index) {
      const uint32_t parameter = layout.parameters[index];
      slots_[parameter] = {static_cast<uint32_t>(buckets_.size()), index};
      const Tensor& leaf = parameters_[parameter].tensor;
      const Tensor target =
          view::as_strided(bucket.buffer, leaf.sizes(), contiguous_strides(leaf.sizes()), layout.offsets[index]);
      autograd::AutogradMeta& meta = autograd::ensure_meta(leaf);
      if (meta.grad.defined()) {
        kernels::copy(target, meta.grad);
        meta.grad = target;
      }
      autograd::set_grad_target(leaf, target);
    }
    bucket.layout = std::move(layout);
    buckets_.push_back(std::move(bucket));
  }
}

std::vector<BucketLayout> Reducer::layout() const {
  std::vector<BucketLayout> layouts;
  for (const Bucket& bucket : buckets_)
    layouts.push_back(bucket.layout);
  return layouts;
}

std::string Reducer::describe(const Bucket& bucket) const {
  return fmt::format("bucket {} of DDP({}), backward {}", &bucket - buckets_.data(), options_.module_name, round_);
}

void Reducer::prepare_for_forward() {
  if (kept_back_) std::rethrow_exception(std::exchange(kept_back_, nullptr));
  if (syncs()) forward_pending_ = true;
}

void Reducer::on_plan(const autograd::Plan& plan) {
  std::fill(planned_.begin(), planned_.end(), uint8_t{0});
  bool reached = false;
  plan.for_each_observed(this, [&](uint32_t tag) { planned_[tag] = reached = true; });
  if (!syncs()) {
    state_ = reached ? State::Accumulating : State::Idle;
    return;
  }
  // A backward that reaches nothing of ours, with no forward of ours before it, is none of our business.
  if (broken_ || (!reached && !forward_pending_)) {
    state_ = State::Idle;
    return;
  }
  absent_ = !reached;
  begin_round(plan.where(), false);
}

void Reducer::begin_round(SourceLocation where, bool failed) {
  state_ = State::Reducing;
  backward_where_ = where;
  failed_ = failed;
  next_bucket_ = 0;
  ready_order_.clear();
  stale_.clear();
  ++round_;
  for (Bucket& bucket : buckets_) {
    bucket.pending = 0;
    bucket.work.reset();
    for (uint32_t parameter : bucket.layout.parameters)
      bucket.pending += planned_[parameter];
  }
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    if (!planned_[i]) prepare_unplanned(i);
  }
  launch_ready();
}

void Reducer::prepare_unplanned(uint32_t parameter) {
  const Tensor& leaf = parameters_[parameter].tensor;
  autograd::AutogradMeta& meta = autograd::ensure_meta(leaf);
  if (!meta.grad.defined()) used_[parameter] = 0;  // cleared since
  set_flag(parameter, used_[parameter]);
  if (!meta.grad.defined()) {
    kernels::fill(meta.grad_target, 0.0);
    return;
  }
  if (!meta.grad.is_same(meta.grad_target)) {
    kernels::copy(meta.grad_target, meta.grad);
    meta.grad = meta.grad_target;
  }
  // What an earlier step left must come out unchanged if no rank used the parameter; the mean of equal values may
  // differ in the last bit.
  if (!used_[parameter]) stale_.emplace_back(parameter, kernels::clone(meta.grad));
}

void Reducer::set_flag(uint32_t parameter, double value) {
  const Slot slot = slots_[parameter];
  write_word(buckets_[slot.bucket].tail, slot.index, value);
}

void Reducer::on_grad_ready(uint32_t tag, bool defined) {
  if (state_ == State::Idle) return;
  if (state_ == State::Accumulating) {
    used_[tag] = used_[tag] || defined;
    return;
  }
  const Slot slot = slots_[tag];
  autograd::AutogradMeta& meta = *autograd::meta(parameters_[tag].tensor);
  if (!meta.grad.defined()) {
    kernels::fill(meta.grad_target, 0.0);  // reached, but no gradient came in the end
  } else if (!meta.grad.is_same(meta.grad_target)) {
    kernels::copy(meta.grad_target, meta.grad);  // put there by hand while backward ran
    meta.grad = meta.grad_target;
  }
  set_flag(tag, 1);
  ready_order_.push_back(tag);
  --buckets_[slot.bucket].pending;
  launch_ready();
  group_->progress();
}

void Reducer::launch_ready() {
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].pending == 0) {
    // A rank that reaches nothing sends the first bucket only: if no rank reaches anything, that was all
    // (finish_round).
    if (absent_ && next_bucket_ == 1) return;
    launch(buckets_[next_bucket_++]);
  }
}

void Reducer::launch(Bucket& bucket) {
  const auto flags = static_cast<int64_t>(bucket.layout.parameters.size());
  const double round = round_in_payload(round_, bucket.layout.dtype);
  write_word(bucket.tail, flags + kPresent, absent_ ? 0 : 1);
  write_word(bucket.tail, flags + kFailed, failed_ ? 1 : 0);
  write_word(bucket.tail, flags + kRound, round);
  write_word(bucket.tail, flags + kRoundSquared, round * round);
  const std::string description = describe(bucket);
  bucket.work = group_->all_reduce(bucket.buffer, {.op = ReduceOp::Avg, .description = description}, backward_where_);
  ++collectives_;
}

Reducer::Outcome Reducer::finish_round() {
  Outcome outcome;
  outcome.users.assign(parameters_.size(), 0);
  const int size = group_->size();
  for (uint32_t i = 0; i < buckets_.size(); ++i) {
    Bucket& bucket = buckets_[i];
    if (!bucket.work) launch(bucket);
    next_bucket_ = std::max(next_bucket_, i + 1);
    bucket.work->wait();
    bucket.work.reset();
    const auto flags = static_cast<int64_t>(bucket.layout.parameters.size());
    const auto count = [&](int64_t position) {
      return static_cast<int>(std::lround(read_word(bucket.tail, position) * size));
    };
    for (int64_t k = 0; k < flags; ++k)
      outcome.users[bucket.layout.parameters[static_cast<size_t>(k)]] = count(k);
    outcome.present = std::max(outcome.present, count(flags + kPresent));
    outcome.failed = std::max(outcome.failed, count(flags + kFailed));
    const double round = round_in_payload(round_, bucket.layout.dtype);
    const double tolerance = is_half(bucket.layout.dtype) ? 1e-2 : 1e-5;
    const auto differs = [&](int64_t position, double expected) {
      return std::abs(read_word(bucket.tail, position) - expected) > tolerance * std::max(1.0, expected);
    };
    if (differs(flags + kRound, round) || differs(flags + kRoundSquared, round * round)) outcome.same_round = false;
    // Nobody reached anything: every rank stops here, after one bucket.
    if (i == 0 && outcome.present == 0 && outcome.failed == 0) break;
  }
  return outcome;
}

bool Reducer::is_error(const Outcome& outcome) const {
  if (outcome.failed > 0 || !outcome.same_round) return true;
  if (options_.find_unused_parameters || outcome.present == 0) return false;
  for (int users : outcome.users) {
    if (users != group_->size()) return true;
  }
  return false;
}

void Reducer::conclude(const Outcome& outcome) {
  settle(outcome);
  reset();
  if (outcome.present > 0 && !rebuilt_) rebuild();
}

void Reducer::settle(const Outcome& outcome) {
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    autograd::AutogradMeta& meta = *autograd::meta(parameters_[i].tensor);
    if (outcome.present == 0 || outcome.users[i] == 0) continue;
    meta.grad = meta.grad_target;
    meta.grad.bump_version();
  }
  for (const auto& [parameter, gradient] : stale_) {
    if (outcome.present > 0 && outcome.users[parameter] > 0) continue;
    kernels::copy(autograd::meta(parameters_[parameter].tensor)->grad_target, gradient);
  }
  if (outcome.present == 0) return;
  forward_pending_ = false;
  std::fill(used_.begin(), used_.end(), uint8_t{0});
}

void Reducer::reset() noexcept {
  state_ = State::Idle;
  absent_ = failed_ = false;
  stale_.clear();
  for (Bucket& bucket : buckets_)
    bucket.work.reset();
}

void Reducer::clear_gradients() {
  for (const NamedParameter& parameter : parameters_)
    autograd::meta(parameter.tensor)->grad = Tensor();
  std::fill(used_.begin(), used_.end(), uint8_t{0});
  forward_pending_ = false;
}

void Reducer::on_finish(const autograd::Plan& plan) {
  if (state_ != State::Reducing) {
    state_ = State::Idle;
    return;
  }
  Outcome outcome;
  try {
    outcome = finish_round();
  } catch (...) {
    // The group itself failed (a peer died, a timeout): nothing that is in the buckets can be trusted.
    broken_ = true;
    reset();
    clear_gradients();
    throw;
  }
  if (is_error(outcome)) {
    report(outcome, &plan, "");
  } else {
    conclude(outcome);
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
      if (plan || !forward_pending_ || !syncs()) {
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
    const Outcome outcome = finish_round();
    if (is_error(outcome)) {
      report(outcome, plan, failure);
    } else {
      conclude(outcome);
    }
  } catch (const ReductionError&) {
    // Backward rethrows its own error, which says more.
  } catch (...) {
    broken_ = true;
    reset();
  }
}

void Reducer::report(const Outcome& outcome, const autograd::Plan* plan, const std::string& failure) {
  // Only here anything more is exchanged. All ranks come here, since all have read the same flags.
  const SourceLocation where = backward_where_;
  std::exception_ptr error;
  try {
    RankReport mine;
    mine.rank = group_->rank();
    mine.round = round_;
    mine.backward = to_string(where);
    mine.failure = failure;
    bool reached = false;
    for (uint8_t planned : planned_)
      reached = reached || planned;
    for (uint32_t i = 0; i < parameters_.size(); ++i) {
      // In an accumulation a parameter counts as ready if any of its backwards used it.
      const bool ready = planned_[i] || used_[i];
      mine.ready.push_back(ready);
      if (!ready && plan && failure.empty()) {
        mine.causes.emplace(i, find_cause(parameters_[i].name, parameters_[i].tensor, *plan, reached));
      }
    }
    const std::vector<std::string> texts =
        group_->all_gather_text(encode(mine), fmt::format("error report of DDP({})", options_.module_name), where);
    std::vector<RankReport> reports;
    for (const std::string& text : texts)
      reports.push_back(decode_report(text));
    error = std::make_exception_ptr(compose_error(reports, parameters_, options_.find_unused_parameters,
                                                  outcome.failed > 0, outcome.same_round, where));
  } catch (const DistError&) {
    broken_ = true;
    error = std::current_exception();
  }
  if (options_.report_at == ReducerOptions::ReportAt::NextForward && outcome.failed == 0 && !broken_) {
    settle(outcome);
    reset();
    kept_back_ = error;
    return;
  }
  reset();
  clear_gradients();
  std::rethrow_exception(error);
}

void Reducer::rebuild() {
  rebuilt_ = true;
  // Rank 0's ready order decides, so that all ranks cut the same buckets. Parameters that were not ready come last.
  std::vector<int64_t> order(ready_order_.begin(), ready_order_.end());
  std::vector<uint8_t> seen(parameters_.size(), 0);
  for (int64_t parameter : order)
    seen[static_cast<size_t>(parameter)] = 1;
  for (size_t i = parameters_.size(); i-- > 0;) {
    if (!seen[i]) order.push_back(static_cast<int64_t>(i));
  }
  Tensor shared = group_->allocate(static_cast<int64_t>(order.size()), kInt64);
  std::memcpy(shared.raw_data(), order.data(), order.size() * sizeof(int64_t));
  const std::string description = fmt::format("ready order of DDP({})", options_.module_name);
  group_->broadcast(shared, {.root = 0, .description = description}, backward_where_)->wait();
  std::memcpy(order.data(), shared.raw_data(), order.size() * sizeof(int64_t));

  std::vector<ParameterInfo> infos;
  for (const NamedParameter& parameter : parameters_)
    infos.push_back({parameter.tensor.numel(), parameter.tensor.dtype()});
  const std::vector<uint32_t> positions(order.begin(), order.end());
  std::vector<BucketLayout> layouts = assign_buckets(infos, positions, options_.limits);
  if (layouts != layout()) build(std::move(layouts));
}

}  // namespace brigade::dist
