// Completes a round: waits for the buckets, reads flags and statistics, and puts the gradients in place.
#include <brigade/dist/reducer/round.h>

#include <brigade/autograd/meta.h>
#include <brigade/core/factory.h>
#include <brigade/dist/reducer/accumulation.h>
#include <brigade/dist/reducer/launch_order.h>
#include <brigade/kernels/bucket.h>
#include <brigade/kernels/elementwise.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace brigade::dist {

void Round::poll() {
  if (next_.complete == next_.launch && (!order_ || order_->is_single())) return;  // nothing is on its way
  setup_.group->progress();
  if (setup_.follower.posts) return;
  while (next_.complete < next_.launch) {
    if (!transport_.is_completed(next_.complete)) return;
    complete(next_.complete++);
    hand_over(next_.complete);
  }
}

void Round::send_waiting_words(uint32_t index) {
  if (!transport_.words_wait(index)) return;
  setup_.options.meter->write_late(*this, index, buckets_[index].payload);
  transport_.send_words(index);
}

// Reads flags and words once they are reduced.
void Round::receive(uint32_t index) {
  Progress& progress = progress_[index];
  if (std::exchange(progress.received, true)) return;
  send_waiting_words(index);
  Payload& payload = buckets_[index].payload;
  payload.receive(transport_.words(index));
}

void Round::complete(uint32_t index) {
  Progress& progress = progress_[index];
  if (progress.completed) return;
  setup_.notify([&](ReducerObserver& each) { each.on_wait(*this, index); });
  transport_.wait(index);
  receive(index);
  setup_.notify([&](ReducerObserver& each) { each.on_reduced(*this, index, transport_.gradients(index)); });
  transport_.release(index);
  progress.completed = true;
  read_words(index);
}

// Hands the sound buckets up to `end` to the follower. A later bucket may report that a rank has failed; if all ranks
// have to judge alike, none has read that bucket yet.
void Round::hand_over(uint32_t end) {
  const BucketFollower& follower = setup_.follower;
  while (follower.reduced && next_.hand_over < end) {
    const uint32_t index = next_.hand_over++;
    complete(index);
    std::vector<uint32_t> parameters = buckets_[index].layout.parameters;
    if (follower.posts && (!traffic().is_sent || outcome_.present == 0)) continue;
    if (!is_sound(parameters)) {
      next_.hand_over = buckets_.size();  // backward will throw: nothing more moves
      return;
    }
    settle(index);
    std::erase_if(parameters, [&](uint32_t each) { return setup_.is_elsewhere(each); });
    if (follower.posts) std::erase_if(parameters, [&](uint32_t each) { return !setup_.expected[each]; });
    try {
      follower.reduced(parameters, start_.where);
    } catch (const std::exception& error) {
      // It is unknown which collectives it has posted, and the peers would wait for the rest.
      if (follower.posts)
        setup_.group->abort(fmt::format("a step in backward threw after {}: {}", describe(index), error.what()));
      throw;
    }
  }
}

void Round::read_words(uint32_t index) {
  const Bucket& bucket = buckets_[index];
  const Payload& payload = bucket.payload;
  const int size = setup_.group->size();
  std::vector<int> users(bucket.layout.parameters.size());
  payload.read_flags(users);
  for (size_t k = 0; k < users.size(); ++k)
    outcome_.users[bucket.layout.parameters[k]] = users[k];
  const auto keep_largest = [&](int& known, Word word) { known = std::max(known, payload.count(word)); };
  keep_largest(outcome_.present, Word::Present);
  keep_largest(outcome_.failed, Word::Failed);
  keep_largest(outcome_.joined, Word::Joined);
  keep_largest(outcome_.changed, Word::Changed);
  if (!traffic().is_sent) return;
  if (!payload.all_equal(Word::Round)) outcome_.same_round = false;
  GradientMeter* const meter = setup_.options.meter.get();
  const bool measured = !meter || meter->read(*this, index, payload);
  const bool all_took_part = outcome_.present == size && outcome_.failed == 0 && outcome_.joined == 0;
  for (size_t i = 0; i < setup_.words.size() && all_took_part; ++i) {
    WordReading reading = payload.read_word(setup_.position_of(i));
    reading.all_have_gradients = measured || meter->is_late();
    setup_.words[i]->read(reading);
  }
  // Checking the result would wait for a device.
  progress_[index].to_judge = measured && payload.on_device();
  if (measured && !payload.on_device()) judge(index);
}

// Whether no rank reached anything; then every rank stops after the first bucket.
bool Round::nobody_is_present() {
  if (next_.launch == 0) {
    launch(0);
    next_.launch = 1;
  }
  if (transport_.has_words_apart(0)) {
    receive(0);
  } else {
    complete(0);
  }
  const Payload& payload = buckets_[0].payload;
  return payload.count(Word::Present) == 0 && payload.count(Word::Failed) == 0;
}

void Round::send_rest() {
  reaches_nothing_ = reaches_nothing_ || (start_.absent && nobody_is_present());
  while (!has_sent_all()) {
    launch(next_.launch);
    ++next_.launch;
  }
}

void Round::finish() {
  setup_.notify([&](ReducerObserver& each) { each.on_computed(*this); });
  // Post all buckets before waiting for the first: what a hook posts while waited for comes after them.
  if (order_) {
    order_->send_rest(*this);
  } else {
    send_rest();
  }
  for (uint32_t i = 0; i < next_.launch; ++i)
    send_waiting_words(i);
  if (reaches_nothing_) {
    complete(0);
    return;
  }
  for (uint32_t i = 0; i < buckets_.size(); ++i) {
    complete(i);
    hand_over(i + 1);
  }
  for (uint32_t i = 0; i < buckets_.size(); ++i)
    if (progress_[i].to_judge) judge(i);
}

void Round::judge(uint32_t index) {
  setup_.notify([&](ReducerObserver& each) { outcome_.rejected = !each.accepts(*this, index) || outcome_.rejected; });
}

bool Round::is_sound(std::span<const uint32_t> parameters) const {
  if (outcome_.failed > 0 || !outcome_.same_round || outcome_.changed > 0 || outcome_.rejected) return false;
  if (setup_.options.find_unused_parameters || setup_.options.static_graph || outcome_.present == 0) return true;
  const int participants = setup_.group->size() - outcome_.joined;
  return std::all_of(parameters.begin(), parameters.end(), [&](uint32_t parameter) {
    return outcome_.users[parameter] == participants || !setup_.has_to_be_ready(parameter);
  });
}

bool Round::is_error() const {
  for (uint32_t b = 0; b < buckets_.size(); ++b) {
    if (!is_sound(buckets_[b].layout.parameters)) return true;
  }
  return !is_sound({});
}

void Round::settle(uint32_t index) {
  Progress& progress = progress_[index];
  if (progress.settled || outcome_.present == 0) return;
  progress.settled = true;
  Bucket& bucket = buckets_[index];
  const int size = setup_.group->size();
  const int participants = size - outcome_.joined;
  if (setup_.join && setup_.join->divides_by_participants() && participants > 0 && participants < size)
    kernels::scale_inplace(bucket.payload.gradients(), static_cast<double>(size) / participants);
  std::vector<Tensor> to_fill;  // on a device: one per slot, filled in one launch
  for (const uint32_t parameter : bucket.layout.parameters) {
    if (outcome_.users[parameter] > 0 && !setup_.is_elsewhere(parameter)) settle_parameter(parameter, to_fill);
  }
  if (!to_fill.empty())
    kernels::bucket_unflatten(bucket.payload.whole(), Tensor(), to_fill, bucket.layout.offsets, 1.0);
}

void Round::settle_parameter(uint32_t parameter, std::vector<Tensor>& to_fill) {
  autograd::AutogradMeta& meta = *autograd::meta(setup_.parameters[parameter].tensor);
  const Slot& slot = buckets_.slot(parameter);
  const Bucket& bucket = buckets_[slot.bucket];
  if (setup_.options.gradient_as_bucket_view) {
    if (!meta.grad.is_same(slot.view)) meta.hold(slot.view);
  } else if (bucket.payload.on_device() && (!meta.grad.defined() || meta.grad.is_contiguous())) {
    if (!meta.grad.defined()) meta.hold(empty_like(slot.view));
    to_fill.resize(bucket.layout.parameters.size());
    to_fill[slot.index] = meta.grad;
  } else if (meta.grad.defined()) {
    kernels::copy(meta.grad, slot.view);
  } else {
    meta.hold(kernels::clone(slot.view));
  }
  meta.grad.storage()->watch();
  meta.stamp.on_reduction(accumulation_.last_heard(), start_.where);
  meta.grad.bump_version();
}

void Round::settle_all() {
  for (uint32_t b = 0; b < buckets_.size(); ++b)
    settle(b);
  for (const auto& [parameter, gradient] : stale_) {
    if (outcome_.present > 0 && outcome_.users[parameter] > 0) continue;
    kernels::copy(buckets_.slot(parameter).view, gradient);
  }
}

}  // namespace brigade::dist
