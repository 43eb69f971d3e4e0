// Writes and reads what travels with the gradients of a bucket.
#include <brigade/dist/buckets/payload.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/bucket.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace brigade::dist {
namespace {

void write(const Tensor& tail, int64_t position, double value) {
  visit_floating(tail.dtype(), "flags", [&]<class T>() {
    static_cast<T*>(tail.raw_data())[position] = static_cast<T>(static_cast<compute_type<T>>(value));
  });
}

double read(const Tensor& tail, int64_t position) {
  return visit_floating(tail.dtype(), "flags", [&]<class T>() {
    return static_cast<double>(static_cast<compute_type<T>>(static_cast<const T*>(tail.raw_data())[position]));
  });
}

constexpr int kWholeBits = 20;  // of a measure

int precision_of(DType dtype) {
  switch (dtype) {
    case kBFloat16: return 8;
    case kFloat16: return 11;
    case kFloat32: return 24;
    default: return 53;
  }
}

// The mean of `ranks` digits below a base is also below it, so with p bits of precision it is rounded by at most half
// of base / 2^p. Multiplied by the number of ranks, that has to stay below one half; if both are powers of two
// nothing is rounded at all. (From 2^p ranks on, digits are spread like counts.)
int digits_of(DType dtype, int ranks) {
  int bits = 1;
  while ((int64_t{ranks} << (bits + 1)) <= (int64_t{1} << precision_of(dtype)))
    ++bits;
  return bits;
}

// Whether the bucket is on a device that the group reduces itself.
bool has_tail_apart(const ProcessGroup& group, const BucketLayout& layout) {
  return layout.device != Device() && group.reaches(layout.device);
}

DType dtype_of_tail(const ProcessGroup& group, const BucketLayout& layout) {
  return has_tail_apart(group, layout) ? kFloat32 : layout.dtype;
}

constexpr int64_t kTruths = static_cast<int64_t>(Word::Round);  // of the reducer; its number follows them

}  // namespace

// A sum of several counts is S < 2^c with c bits. The sum is exact; its mean is rounded by at most S / 2^p in a half
// type (computed in float32, rounded once), and by 2 S / 2^p elsewhere, since 1 / ranks is rounded as well. That has
// to stay below one half. A single count is at most `ranks`, and its mean at most 1, which halves the error.
CountLayout::CountLayout(DType dtype, int ranks) noexcept
    : bits(std::bit_width(static_cast<unsigned>(ranks))), per_element(1), shares(1) {
  const int precision = precision_of(dtype);
  per_element = std::max<int64_t>(1, (precision - (is_half(dtype) ? 1 : 2)) / bits);
  const int64_t most = int64_t{1} << (precision - 1);
  if (ranks > 2 * most) shares = (ranks + most - 1) / most;
}

TailLayout::TailLayout(DType dtype, int ranks, size_t parameters, std::span<const WordKind> kinds)
    : counts(dtype, ranks), flags(static_cast<int64_t>(parameters)), bits(kTruths + kNumberBits) {
  if (is_half(dtype)) digit_bits = digits_of(dtype, ranks);
  for (const WordKind kind : kinds) {
    registered.push_back({kind, bits});
    if (kind == WordKind::Truth) ++bits;
    if (kind == WordKind::Number) bits += kNumberBits;
  }
  const auto width = [&](int whole) {
    return digit_bits == 0 ? 1 : (whole + digit_bits - 1) / digit_bits * counts.shares;
  };
  numel = flags * counts.shares + counts.numel(bits);
  for (Position& each : registered) {
    if (each.kind != WordKind::Measure) continue;
    each.first = numel;
    each.square = numel + width(kWholeBits);
    numel = each.square + width(2 * kWholeBits);
  }
  for (Position& each : registered)
    if (each.kind == WordKind::Real) each.first = numel++;
}

Payload::Payload(ProcessGroup& group, const BucketLayout& layout, std::span<const WordKind> registered,
                 std::shared_ptr<DeviceStream> reading, bool measured)
    : rank_(group.rank()),
      ranks_(group.size()),
      layout_(dtype_of_tail(group, layout), ranks_, layout.parameters.size(), registered),
      own_bits_(static_cast<size_t>(layout_.counts.numel(layout_.bits) / layout_.counts.shares)),
      reading_(std::move(reading)) {
  const bool on_device = layout.device != Device();
  const bool apart = has_tail_apart(group, layout);
  const int64_t length = layout_.numel;
  const int64_t total = layout.gradient_numel + (apart ? 0 : length);
  if (measured && !on_device && group.takes_sums()) {
    std::vector<int64_t> edges = layout.offsets;  // padding is 0
    edges.push_back(layout.gradient_numel);
    slot_sums_ = std::make_shared<SlotSums>(group.rank(), ranks_, layout.dtype, total, std::move(edges));
  }
  const Tensor memory = group.allocate(slot_sums_ ? slot_sums_->numel_with_room() : total, layout.dtype, layout.device);
  if (slot_sums_) slot_sums_->place_in(memory);
  whole_ = view::slice(memory, 0, 0, total);
  kernels::fill(whole_, 0.0);  // padding is reduced too and must stay finite
  gradients_ = view::slice(whole_, 0, 0, layout.gradient_numel);
  tail_ = apart ? group.allocate(length, kFloat32) : view::slice(whole_, 0, layout.gradient_numel, total);
  host_tail_ = tail_;
  if (apart) kernels::fill(tail_, 0.0);
  if (!on_device) return;
  const DeviceRuntime& runtime = device_runtime(layout.device);
  if (!apart) {
    host_tail_ = empty_pinned(runtime, tail_.sizes(), tail_.dtype());
    kernels::fill(host_tail_, 0.0);
  }
  arrived_ = runtime.new_event(layout.device.index);
}

void Payload::send() {
  if (!on_device() || has_tail_on_host()) return;
  const Device device = whole_.device();
  device_runtime(device).copy_async(tail_.raw_data(), host_tail_.raw_data(), tail_.nbytes(), device.index);
}

Tensor Payload::reals(size_t index, int64_t count) const {
  const int64_t first = layout_.registered[index].first;
  return view::slice(tail_, 0, first, first + count);
}

void Payload::receive(Work& reduced) {
  if (!on_device() || has_tail_on_host()) {
    reduced.wait();
    return;
  }
  const Device device = whole_.device();
  {
    const DeviceStreamGuard guard(*reading_);
    reduced.wait();
    device_runtime(device).copy_async(host_tail_.raw_data(), tail_.raw_data(), tail_.nbytes(), device.index);
    arrived_->record();
  }
  arrived_->synchronize();
}

// Clears the other shares, which hold the average of the previous backward.
void Payload::write_share(int64_t first, double value) {
  const int64_t shares = layout_.counts.shares;
  for (int64_t i = 0; i < shares; ++i)
    write(host_tail_, first + i, i == rank_ % shares ? value : 0);
}

void Payload::set_flag(size_t index, bool on) {
  write_share(static_cast<int64_t>(index) * layout_.counts.shares, on ? 1 : 0);
}

// Most flags are one element each.
void Payload::set_flags(std::span<const uint8_t> on) {
  if (layout_.counts.shares != 1) {
    for (size_t i = 0; i < on.size(); ++i)
      set_flag(i, on[i] != 0);
    return;
  }
  visit_floating(host_tail_.dtype(), "flags", [&]<class T>() {
    T* const flags = static_cast<T*>(host_tail_.raw_data());
    const T zero = static_cast<T>(compute_type<T>{0}), one = static_cast<T>(compute_type<T>{1});
    for (size_t i = 0; i < on.size(); ++i)
      flags[i] = on[i] != 0 ? one : zero;
  });
}

void Payload::read_flags(std::span<int> counts) const {
  if (layout_.counts.shares != 1) {
    for (size_t i = 0; i < counts.size(); ++i)
      counts[i] = flag_count(i);
    return;
  }
  visit_floating(host_tail_.dtype(), "flags", [&]<class T>() {
    const T* const flags = static_cast<const T*>(host_tail_.raw_data());
    for (size_t i = 0; i < counts.size(); ++i)
      counts[i] = static_cast<int>(static_cast<double>(static_cast<compute_type<T>>(flags[i])) * ranks_ + 0.5);
  });
}

void Payload::set_bits(int64_t first, int64_t count, uint64_t bits) {
  const CountLayout& counts = layout_.counts;
  for (int64_t i = first; i < first + count; ++i, bits >>= 1) {
    const int64_t element = i / counts.per_element, place = i % counts.per_element;
    uint64_t& sent = own_bits_[static_cast<size_t>(element)];
    const uint64_t mask = uint64_t{1} << (place * counts.bits);
    sent = (bits & 1) != 0 ? sent | mask : sent & ~mask;
    if (place + 1 < counts.per_element && i + 1 < first + count) continue;  // more bits of this element follow
    write_share((layout_.flags + element) * counts.shares, static_cast<double>(sent));
  }
}

void Payload::set(Word truth, bool on) { set_bits(static_cast<int64_t>(truth), 1, on ? 1 : 0); }

void Payload::set_number(Word number, uint64_t value) { set_bits(static_cast<int64_t>(number), kNumberBits, value); }

void Payload::set_whole(int64_t first, int bits, uint64_t value) {
  if (layout_.digit_bits == 0) return write(host_tail_, first, static_cast<double>(value));
  for (int done = 0; done < bits; done += layout_.digit_bits, first += layout_.counts.shares) {
    write_share(first, static_cast<double>(value & ((uint64_t{1} << layout_.digit_bits) - 1)));
    value >>= layout_.digit_bits;
  }
}

void Payload::set_word(size_t index, uint64_t value) {
  const TailLayout::Position& place = layout_.registered[index];
  if (place.kind == WordKind::Truth) return set_bits(place.first, 1, value != 0 ? 1 : 0);
  if (place.kind == WordKind::Number) return set_bits(place.first, kNumberBits, value);
  value = std::min(value, (uint64_t{1} << kWholeBits) - 1);
  set_whole(place.first, kWholeBits, value);
  set_whole(place.square, 2 * kWholeBits, value * value);
}

double Payload::set_real(size_t index, double value) {
  const int64_t position = layout_.registered[index].first;
  write(host_tail_, position, value);
  return read(host_tail_, position);
}

uint64_t Payload::sum_of_shares(int64_t first) const {
  uint64_t sum = 0;
  for (int64_t i = 0; i < layout_.counts.shares; ++i)
    sum += static_cast<uint64_t>(std::llround(read(host_tail_, first + i) * ranks_));
  return sum;
}

int Payload::flag_count(size_t index) const {
  return static_cast<int>(sum_of_shares(static_cast<int64_t>(index) * layout_.counts.shares));
}

// Calls f(number of ranks that set it) for each of the bits, until it returns false.
template <class F>
bool Payload::for_counts(int64_t first, int64_t count, F&& f) const {
  const CountLayout& counts = layout_.counts;
  uint64_t sum = 0;
  for (int64_t i = first; i < first + count; ++i) {
    const int64_t element = i / counts.per_element, place = i % counts.per_element;
    if (i == first || place == 0) sum = sum_of_shares((layout_.flags + element) * counts.shares);
    const uint64_t ranks = sum >> (place * counts.bits) & ((uint64_t{1} << counts.bits) - 1);
    if (!f(static_cast<int>(ranks))) return false;
  }
  return true;
}

int Payload::count_at(int64_t bit) const {
  int found = 0;
  for_counts(bit, 1, [&](int ranks) { return (found = ranks, true); });
  return found;
}

int Payload::count(Word truth) const { return count_at(static_cast<int64_t>(truth)); }

bool Payload::all_equal_at(int64_t first) const {
  return for_counts(first, kNumberBits, [&](int ranks) { return ranks == 0 || ranks == ranks_; });
}

bool Payload::all_equal(Word number) const { return all_equal_at(static_cast<int64_t>(number)); }

double Payload::mean_of_whole(int64_t first, int bits) const {
  if (layout_.digit_bits == 0) return read(host_tail_, first);
  double total = 0;  // over the ranks
  for (int digit = (bits + layout_.digit_bits - 1) / layout_.digit_bits; digit-- > 0;)
    total = std::ldexp(total, layout_.digit_bits) +
            static_cast<double>(sum_of_shares(first + digit * layout_.counts.shares));
  return total / ranks_;
}

WordReading Payload::read_word(size_t index) const {
  const TailLayout::Position& place = layout_.registered[index];
  WordReading reading{.ranks = ranks_};
  switch (place.kind) {
    case WordKind::Truth: reading.count = count_at(place.first); return reading;
    case WordKind::Number: reading.all_equal = all_equal_at(place.first); return reading;
    case WordKind::Real: reading.mean = read(host_tail_, place.first); return reading;
    case WordKind::Measure: break;
  }
  reading.mean = mean_of_whole(place.first, kWholeBits);
  const double of_squares = mean_of_whole(place.square, 2 * kWholeBits);
  reading.variance = std::max(0.0, of_squares - reading.mean * reading.mean);
  return reading;
}

}  // namespace brigade::dist
