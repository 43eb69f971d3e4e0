// Runs a backward: gradients become ready, and buckets are launched. outcome.cpp handles the results.
#include <brigade/dist/reducer/round.h>

#include <brigade/autograd/meta.h>
#include <brigade/dist/reducer/accumulation.h>
#include <brigade/dist/reducer/launch_order.h>
#include <brigade/kernels/bucket.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::dist {

Round::Round(const ReducerSetup& setup, Buckets& buckets, Accumulation& accumulation, const RecordedGraph& recorded,
             Start start)
    : setup_(setup),
      buckets_(buckets),
      accumulation_(accumulation),
      recorded_(recorded),
      start_(std::move(start)),
      transport_(setup, buckets, start_.number, start_.where),
      captured_(buckets.are_captured()),
      progress_(buckets.size()) {
  outcome_.users.assign(setup_.count(), 0);
  ready_order_.reserve(setup_.count());
  // A path that the plan sees may carry no gradient: planned parameters are compared when they are ready.
  for (uint32_t i = 0; i < recorded_.used.size(); ++i) {
    if (!start_.planned[i] || accumulation_.used(i)) compare_with_recorded(i);
  }
  const std::optional<uint32_t>& trigger = setup_.options.trigger;
  for (uint32_t b = 0; b < buckets_.size(); ++b) {
    for (const uint32_t parameter : buckets_[b].layout.parameters)
      progress_[b].pending += start_.planned[parameter];
    // A delayed bucket waits for its trigger as well.
    if (trigger && buckets_.is_delayed(b) && start_.planned[*trigger]) ++progress_[b].pending;
  }
}

Round::~Round() {
  if (order_) order_->remove(*this);
}

void Round::take_turns(LaunchOrder& order, uint64_t forward) {
  if (start_.held) return;
  order.add(*this, *setup_.group, forward);
  order_ = &order;
}

void Round::begin() {
  for (uint32_t i = 0; i < setup_.count(); ++i)
    if (!start_.planned[i]) prepare_unplanned(i);
  if (!order_) send_ready();  // other rounds may not be known yet
}

bool Round::uses(uint32_t parameter) const {
  return start_.planned[parameter] || start_.is_reached_elsewhere(parameter) || accumulation_.used(parameter);
}

void Round::compare_with_recorded(uint32_t parameter) {
  if (recorded_.used.empty() || start_.joined || start_.failed) return;
  start_.changed = start_.changed || (recorded_.used[parameter] != 0) != uses(parameter);
}

Moment Round::moment() const {
  return {.iteration = start_.number, .where = start_.where, .ranks = setup_.group->size()};
}

std::vector<std::string> Round::exchange(const std::string& text, const char* about, Phase phase) const {
  return setup_.group->all_gather_text(text, setup_.topic(phase, about), start_.where);
}

void Round::fail() noexcept {
  // Buckets that were already launched look sound to the peers, so all ranks judge alike. If the first
  // bucket has reported that this rank reaches nothing, the peers rely on that: if no rank reaches anything, no other
  // bucket follows.
  start_.failed = true;
  if (next_.launch == 0) start_.absent = false;
}

void Round::prepare_unplanned(uint32_t parameter) {
  if (setup_.is_elsewhere(parameter)) {
    kernels::fill(buckets_.slot(parameter).view, 0.0);
    return;
  }
  const autograd::AutogradMeta& meta = autograd::ensure_meta(setup_.parameters[parameter].tensor);
  const Tensor gradient = meta.grad;
  if (!gradient.defined()) accumulation_.forget(parameter);  // cleared since
  const bool used = accumulation_.used(parameter);
  take_gradient(parameter);
  if (!gradient.defined()) return;
  // A gradient left by an earlier step must stay unchanged if no rank used the parameter; the mean of equal values
  // may differ in the last bit.
  if (!used) {
    stale_.emplace_back(parameter, kernels::clone(gradient));
  } else {
    measure(parameter);
    setup_.notify([&](ReducerObserver& each) { each.on_accumulated(*this, parameter); });
  }
}

// Puts the gradient into its slot, unless it is already there; fills the slot with zeros if there is none.
void Round::take_gradient(uint32_t parameter) {
  autograd::AutogradMeta& meta = *autograd::meta(setup_.parameters[parameter].tensor);
  const Slot& slot = buckets_.slot(parameter);
  if (!meta.grad.defined()) {
    kernels::fill(slot.view, 0.0);
    return;
  }
  if (meta.grad.is_same(slot.view)) return;
  const Bucket& bucket = buckets_[slot.bucket];
  if (bucket.payload.on_device() && meta.grad.dtype() == slot.view.dtype() && meta.grad.is_contiguous()) {
    // All gradients of a bucket are copied in one launch.
    std::vector<Tensor>& to_copy = progress_[slot.bucket].to_copy;
    to_copy.resize(bucket.layout.parameters.size());
    to_copy[slot.index] = meta.grad;
  } else {
    kernels::copy(slot.view, meta.grad);  // in separate memory, or set by hand while backward ran
  }
  if (setup_.options.gradient_as_bucket_view) meta.hold(slot.view);
}

void Round::on_grad_ready(uint32_t parameter, bool defined) {
  if (!defined && !accumulation_.used(parameter)) {
    // The plan saw a path, but no gradient came along it (a cut visible only to backward).
    start_.planned[parameter] = 0;
    prepare_unplanned(parameter);
  } else {
    take_gradient(parameter);
    measure(parameter);
    if (accumulation_.local(parameter).backwards > 0)
      setup_.notify([&](ReducerObserver& each) { each.on_accumulated(*this, parameter); });
    ready_order_.push_back(parameter);
    for (ReducerObserver* const each : setup_.hearing)
      each->on_ready(*this, parameter);
  }
  compare_with_recorded(parameter);
  --progress_[buckets_.slot(parameter).bucket].pending;
  if (setup_.options.trigger == parameter) {
    for (uint32_t b = 0; b < buckets_.size(); ++b)
      progress_[b].pending -= buckets_.is_delayed(b);
  }
  if (next_.launch < buckets_.size() && progress_[next_.launch].pending == 0)
    order_ ? order_->advance(*this) : send_ready();
  poll();
}

void Round::send_ready() {
  if (start_.held) return;
  while (next_.launch < buckets_.size() && progress_[next_.launch].pending == 0) {
    // A rank that reaches nothing sends only the first bucket: if no rank reaches anything, nothing more is sent
    // (finish()).
    if (start_.absent && next_.launch == 1) return;
    launch(next_.launch);  // if this throws, it is not launched
    ++next_.launch;
  }
}

bool Round::has_sent_all() const noexcept { return next_.launch == buckets_.size() || reaches_nothing_; }

void Round::launch(uint32_t index) {
  // Run the follower's collectives at a fixed point, so that all ranks post in the same order.
  if (setup_.follower.posts && index >= 2) hand_over(index - 1);
  setup_.notify([&](ReducerObserver& each) { each.on_launch(*this, index); });
  fill_words(index);
  transport_.send(index);
}

// Sets what travels with the gradients.
void Round::fill_words(uint32_t index) {
  Bucket& bucket = buckets_[index];
  Payload& payload = bucket.payload;
  Progress& progress = progress_[index];
  std::vector<uint8_t> used;
  used.reserve(bucket.layout.parameters.size());
  for (const uint32_t parameter : bucket.layout.parameters)
    used.push_back(uses(parameter));
  payload.set_flags(used);
  payload.set(Word::Present, !start_.absent);
  payload.set(Word::Failed, start_.failed);
  payload.set(Word::Joined, start_.joined);
  payload.set(Word::Changed, start_.changed);
  payload.set_number(Word::Round, start_.number + start_.averages);
  for (size_t i = 0; i < setup_.words.size(); ++i)
    payload.set_word(setup_.position_of(i), setup_.words[i]->value());
  if (!progress.to_copy.empty()) kernels::bucket_flatten(payload.whole(), progress.to_copy, bucket.layout.offsets, 1.0);
  progress.to_copy.clear();
  GradientMeter* const meter = setup_.options.meter.get();
  if (meter) meter->write(*this, index, payload);
  payload.send();
  if (meter) meter->on_send(*this, index, payload);
}

}  // namespace brigade::dist
