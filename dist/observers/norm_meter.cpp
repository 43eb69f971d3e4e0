// Measures gradients on the CPU and on devices, and compares what the ranks have sent.
#include <brigade/dist/observers/norm_meter.h>

#include <brigade/autograd/gradient_scale.h>
#include <brigade/core/factory.h>
#include <brigade/core/fnv.h>
#include <brigade/core/view.h>
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/reducer/round.h>
#include <brigade/kernels/bucket.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace brigade::dist {
namespace {

// Positions of the words. The four from kNorm on are as kernels::bucket_words writes them. Where the all-reduce
// measures, they hold what was known before it: no norm, and an infinite loss.
enum : size_t {
  kScaled,    // a gradient comes from a scaled loss; set only with a communication hook
  kLikeness,  // hash of this rank's gradients
  kNorm,      // log2 of the sum of squares of this rank's gradients
  kNormSquared,
  kSilent,     // no statement about the numbers
  kNonFinite,  // a gradient of this rank is infinite or NaN
  kProbe,      // kernels::probe() of this rank's gradients
};

// Whether any rank has set that real, which is 0 or 1.
bool is_set(const Payload& payload, size_t word) { return payload.read_word(word).mean > 0; }

// Whether the all-reduce measures the gradients of this payload.
bool is_measured_on_the_way(const Round& round, const Payload& payload) {
  return payload.slot_sums() && !round.setup().hook;
}

double finite_or_0(double value) { return std::isfinite(value) ? value : 0; }

}  // namespace

std::vector<WordKind> NormMeter::words() const {
  constexpr WordKind kReal = WordKind::Real;
  return {WordKind::Truth, WordKind::Number, kReal, kReal, kReal, kReal, kReal};
}

void NormMeter::on_build(const Buckets& buckets) {
  on_device_.clear();
  for (uint32_t b = 0; b < buckets.size(); ++b) {
    const BucketLayout& layout = buckets[b].layout;
    DeviceSums& made = on_device_.emplace_back();
    if (layout.device == Device()) continue;
    const DeviceRuntime& runtime = device_runtime(layout.device);
    made.sums = empty({static_cast<int64_t>(layout.parameters.size()) + 1}, {kFloat64, layout.device});
    made.on_host = empty_pinned(runtime, made.sums.sizes(), kFloat64);
    made.arrived = runtime.new_event(layout.device.index);
  }
}

void NormMeter::on_rebuild(const Buckets& buckets) {
  if (is_pending_) receive(own_, buckets);
}

void NormMeter::begin(const Round& round, const autograd::Plan* plan) {
  const Buckets& buckets = round.buckets();
  earlier_.reset();
  if (std::exchange(is_pending_, false) && !round.is_captured()) {
    receive(own_, buckets);
    earlier_ = std::move(own_);
  }
  own_ = {.moment = round.moment(),
          .sums_of_squares = std::vector<double>(round.setup().count()),
          .on_the_way = {},
          .non_finite = {}};
  measured_ = {};
  progress_.assign(buckets.size(), {});
  is_late_ = false;
  for (uint32_t b = 0; b < buckets.size(); ++b) {
    const Payload& payload = buckets[b].payload;
    is_late_ = is_late_ || (payload.has_tail_on_host() && !round.setup().hook);
    if (payload.slot_sums()) payload.slot_sums()->want_none();
  }
  if (plan) own_.non_finite.look_at_loss(*plan, !round.is_captured());
}

void NormMeter::measure(const Round& round, uint32_t parameter) {
  const Slot& slot = round.buckets().slot(parameter);
  const Bucket& bucket = round.buckets()[slot.bucket];
  Progress& progress = progress_[slot.bucket];
  if (bucket.payload.on_device()) {
    progress.measured.resize(bucket.layout.parameters.size());
    progress.measured[slot.index] = slot.view.numel();
    return;
  }
  if (is_measured_on_the_way(round, bucket.payload)) return bucket.payload.slot_sums()->want(slot.index);
  const double sum = kernels::sum_of_squares(slot.view);
  own_.take(parameter, sum);
  progress.sum_of_squares += sum;
}

void NormMeter::write(const Round& round, uint32_t bucket, Payload& payload) {
  Progress& progress = progress_[bucket];
  // The hook's result is checked: if it has overflowed, a scaler on any rank will handle it.
  const bool may_scale = round.setup().hook && autograd::has_scalers();
  payload.set_word(kScaled, may_scale && any_is_scaled(round.setup().parameters) ? 1 : 0);
  // Gradients of different data may have the same norm, but not also the same probe.
  uint64_t likeness = mix(std::bit_cast<uint64_t>(progress.sum_of_squares));
  if (was_alike_ && !payload.on_device())
    likeness = mix(likeness ^ std::bit_cast<uint64_t>(kernels::probe(payload.gradients())));
  payload.set_word(kLikeness, likeness);
  const bool may_wait = !(round.is_captured() && payload.has_tail_on_host());
  if (!round.start().takes_part() || !may_wait) progress.measured.clear();
  if (is_late_ && !progress.measured.empty()) {
    own_.on_the_way.resize(round.setup().count());
    for (size_t k = 0; k < progress.measured.size(); ++k)
      own_.on_the_way[round.buckets()[bucket].layout.parameters[k]] = progress.measured[k] != 0;
  }
  write_numbers(round, bucket, payload);
}

// A device computes the numbers itself if its words travel with the gradients.
void NormMeter::write_numbers(const Round& round, uint32_t bucket, Payload& payload) {
  double sum = 0;
  for (const uint32_t parameter : round.buckets()[bucket].layout.parameters)
    sum += numbers().sums_of_squares[parameter];
  const bool unknown = is_late_ && !earlier_;
  const bool silent = unknown || (!is_late_ && !round.start().takes_part());
  const bool by_device = payload.on_device() && !payload.has_tail_on_host();
  const bool measured =
      by_device ? !progress_[bucket].measured.empty() : sum != 0 || is_measured_on_the_way(round, payload);
  payload.set_real(kSilent, silent || !measured ? 1 : 0);
  payload.set_real(kNonFinite, !unknown && numbers().any_non_finite() ? 1 : 0);
  const double norm = payload.set_real(kNorm, logarithm(sum));
  payload.set_real(kNormSquared, norm * norm);
}

void NormMeter::on_send(const Round& round, uint32_t bucket, Payload& payload) {
  const bool probes = round.setup().hook && round.traffic().is_sent && !round.is_captured();
  const Tensor& gradients = payload.gradients();
  if (!payload.on_device()) {
    if (probes) payload.set_real(kProbe, finite_or_0(kernels::probe(gradients)));
    return;
  }
  const BucketLayout& layout = round.buckets()[bucket].layout;
  const std::vector<int64_t>& measured = progress_[bucket].measured;
  if (measured.empty() && !probes) return;
  const DeviceSums& own = on_device_[bucket];
  const auto slots = static_cast<int64_t>(layout.parameters.size());
  const Tensor probe = view::slice(own.sums, 0, slots, slots + 1);
  if (!measured.empty()) {
    const Tensor sums = view::slice(own.sums, 0, 0, slots);
    kernels::bucket_sums_of_squares(gradients, layout.offsets, measured, sums);
    if (!payload.has_tail_on_host()) kernels::bucket_words(payload.reals(kNorm, 4), sums, own_.any_non_finite());
  }
  if (probes) {
    kernels::bucket_probe(gradients, probe);
    if (!payload.has_tail_on_host()) kernels::copy(payload.reals(kProbe, 1), probe);
  }
  const Device device = gradients.device();
  device_runtime(device).copy_async(own.on_host.raw_data(), own.sums.raw_data(), own.sums.nbytes(), device.index);
  own.arrived->record();
}

void NormMeter::write_late(const Round& round, uint32_t bucket, Payload& payload) {
  if (round.is_captured()) return;
  take_sums(round, bucket);
  write_numbers(round, bucket, payload);
  payload.set_real(kProbe, finite_or_0(on_device_[bucket].on_host.to_vector<double>().back()));
}

void NormMeter::take_sums(const Round& round, uint32_t bucket) {
  const DeviceSums& found = on_device_[bucket];
  found.arrived->synchronize();
  const std::vector<int64_t>& measured = progress_[bucket].measured;
  for (size_t k = 0; k < measured.size(); ++k) {
    if (measured[k] != 0) own_.take(round.buckets()[bucket].layout.parameters[k], found.on_host.data_ptr<double>()[k]);
  }
}

void NormMeter::receive(Numbers& numbers, const Buckets& buckets) const {
  for (uint32_t i = 0; i < numbers.on_the_way.size(); ++i) {
    if (!std::exchange(numbers.on_the_way[i], uint8_t{0})) continue;
    const Slot& slot = buckets.slot(i);
    const DeviceSums& found = on_device_[slot.bucket];
    found.arrived->synchronize();
    numbers.take(i, found.on_host.data_ptr<double>()[slot.index]);
  }
}

bool NormMeter::read(const Round& round, uint32_t bucket, const Payload& payload) {
  if (payload.on_device() && !payload.has_tail_on_host()) take_sums(round, bucket);
  const int size = round.setup().group->size();
  const int non_finite = static_cast<int>(std::lround(payload.read_word(kNonFinite).mean * size));
  measured_.non_finite = std::max(measured_.non_finite, non_finite);
  bool silent = is_set(payload, kSilent);
  const bool on_the_way = is_measured_on_the_way(round, payload);
  if (on_the_way) silent = !read_slot_sums(round, bucket, payload) || silent;
  if (silent) return false;
  const Progress& progress = progress_[bucket];
  if (size > 1 && !payload.on_device() && progress.same_sums && payload.read_word(kLikeness).all_equal)
    ++measured_.alike;
  const double norm = payload.read_word(kNorm).mean;
  const double variance =
      on_the_way ? progress.variance : std::max(0.0, payload.read_word(kNormSquared).mean - norm * norm);
  measured_.outlier = measured_.outlier || distance_of_one(variance, size) > 9;  // 22 times the norm
  return true;
}

bool NormMeter::read_slot_sums(const Round& round, uint32_t bucket, const Payload& payload) {
  const SlotSums& sums = *payload.slot_sums();
  if (!sums.taken()) return false;
  Progress& progress = progress_[bucket];
  const int size = round.setup().group->size();
  int non_finite = 0;
  bool all_have_some = true;
  double first = 0, mean = 0, of_squares = 0;
  for (int r = 0; r < size; ++r) {
    double total = 0;
    bool finite = true;
    for (size_t k = 0; k < sums.slots(); ++k) {
      const double sum = sums.sum(r, k);
      if (r == round.setup().group->rank() && sum != 0) own_.take(round.buckets()[bucket].layout.parameters[k], sum);
      finite = finite && std::isfinite(sum);
      total += sum;
    }
    if (!finite) ++non_finite;
    if (total == 0) all_have_some = false;
    if (r == 0) first = total;
    if (total != first) progress.same_sums = false;
    const double norm = logarithm(total);
    mean += norm / size;
    of_squares += norm * norm / size;
  }
  progress.variance = std::max(0.0, of_squares - mean * mean);
  measured_.non_finite = std::max(measured_.non_finite, non_finite);
  return all_have_some;
}

NormMeter::Reading NormMeter::reading_of(const Payload& payload) {
  return {.probe = payload.read_word(kProbe).mean,
          .norm = std::exp2(payload.read_word(kNorm).mean / 2),
          .finite = !is_set(payload, kNonFinite),
          .scaled = payload.read_word(kScaled).count > 0};
}

void NormMeter::settle(const Round& round) {
  was_alike_ = measured_.alike == round.buckets().size();
  if (round.traffic().is_sent) non_finite_in_a_row_ = measured_.non_finite > 0 ? non_finite_in_a_row_ + 1 : 0;
  is_pending_ = is_late_;
}

bool NormMeter::looks_for_non_finite() const {
  // If the loss is finite, look only in backwards that follow a non-finite one: with a loss scaler the next ones are
  // often non-finite too, but many in a row only if something is wrong.
  constexpr int kBackwards = 24;
  const int before = non_finite_in_a_row_;
  return own_.non_finite.loss ? before == 0 : before > 0 && before <= kBackwards;
}

void NormMeter::on_non_finite(const char* op, SourceLocation where, DType dtype) {
  own_.non_finite.note_derivative(op, where, dtype);
}

std::vector<WordKind> words_of_diagnosis() {
  std::vector<WordKind> all = NormMeter().words();
  const std::vector<NamedAdvice> advice = make_all_advice();
  for (const Statistic* const each : statistics_of(advice))
    all.push_back(each->kind());
  all.push_back(WordKind::Number);  // of updates by hand (dist/checks/hand_updates.h)
  return all;
}

}  // namespace brigade::dist
