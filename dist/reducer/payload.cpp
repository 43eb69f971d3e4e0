// Writing and reading what travels with the gradients of a bucket.
#include <brigade/dist/reducer/payload.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/bucket.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
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

Word square_of(Word word) { return static_cast<Word>(static_cast<uint8_t>(word) + 1); }

constexpr int kWholeBits = 20;

// Of a word that travels as digits where the dtype is a half type; 0 for any other.
int bits_of(Word word) {
  if (word == Word::Time || word == Word::Rows) return kWholeBits;
  return word == Word::TimeSquared || word == Word::RowsSquared ? 2 * kWholeBits : 0;
}

// The mean of `ranks` digits below a base is below it too, so it is rounded to half of base / 2^p
// at most, with p bits of precision. Times the ranks that has to stay below one half; where both
// are powers of two nothing is rounded at all.
int digit_bits(DType dtype, int ranks) {
  const int64_t precision = dtype == kBFloat16 ? 8 : 11;
  int bits = 1;
  while ((int64_t{ranks} << (bits + 1)) <= (int64_t{1} << precision))
    ++bits;
  return bits;
}

double whole_number(double value) { return std::clamp(std::round(value), 0.0, std::exp2(kWholeBits) - 1); }

}  // namespace

void Payload::place_words(DType dtype, int ranks) {
  if (is_half(dtype)) digit_bits_ = digit_bits(dtype, ranks);
  int64_t next = flags_;
  for (size_t i = 0; i < positions_.size(); ++i) {
    positions_[i] = next;
    const int bits = is_half(dtype) ? bits_of(static_cast<Word>(i)) : 0;
    next += bits == 0 ? 1 : (bits + digit_bits_ - 1) / digit_bits_;
  }
}

Payload::Payload(ProcessGroup& group, const BucketLayout& layout, std::shared_ptr<DeviceStream> reading, bool measured)
    : flags_(static_cast<int64_t>(layout.parameters.size())),
      ranks_(group.size()),
      offsets_(layout.offsets),
      reading_(std::move(reading)) {
  const bool on_device = layout.device != Device();
  const bool apart = on_device && group.reaches(layout.device);
  place_words(apart ? kFloat32 : layout.dtype, ranks_);
  const int64_t length = positions_.back();
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
  sums_ = empty({flags_ + 1}, {kFloat64, layout.device});
  host_sums_ = empty_pinned(runtime, sums_.sizes(), kFloat64);
  arrived_ = runtime.new_event(layout.device.index);
}

void Payload::send(std::span<const int64_t> measured, bool non_finite) {
  if (!on_device()) return;
  const Device device = whole_.device();
  if (!has_tail_on_host())
    device_runtime(device).copy_async(tail_.raw_data(), host_tail_.raw_data(), tail_.nbytes(), device.index);
  if (measured.empty()) return;
  kernels::bucket_sums_of_squares(gradients_, offsets_, measured, sums_of_slots());
  if (has_tail_on_host()) return copy_sums_to_host();
  const int64_t first = position(Word::Norm);
  kernels::bucket_words(view::slice(tail_, 0, first, first + 4), sums_of_slots(), non_finite);
}

Tensor Payload::sums_of_slots() const { return view::slice(sums_, 0, 0, flags_); }

void Payload::copy_sums_to_host() {
  const Device device = whole_.device();
  device_runtime(device).copy_async(host_sums_.raw_data(), sums_.raw_data(), sums_.nbytes(), device.index);
  arrived_->record();
}

void Payload::receive_sums() const {
  if (arrived_) arrived_->synchronize();
}

void Payload::set_probe() {
  const double sent = host_sums_.data_ptr<double>()[flags_];
  set(Word::Probe, std::isfinite(sent) ? sent : 0);
}

void Payload::send_probe() {
  if (!on_device()) {
    const double sent = probe();
    set(Word::Probe, std::isfinite(sent) ? sent : 0);
    return;
  }
  if (has_tail_on_host()) {
    kernels::bucket_probe(gradients_, view::slice(sums_, 0, flags_, flags_ + 1));
    return copy_sums_to_host();
  }
  const Tensor value = empty({1}, {kFloat64, whole_.device()});
  kernels::bucket_probe(gradients_, value);
  kernels::copy(view::slice(tail_, 0, position(Word::Probe), position(Word::Probe) + 1), value);
}

double Payload::probe() const {
  if (!on_device()) return kernels::probe(gradients_);
  const Tensor value = empty({1}, {kFloat64, whole_.device()});
  kernels::bucket_probe(gradients_, value);
  return brigade::detail::element_as_double(value, 0);
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
    copy_sums_to_host();
  }
  receive_sums();
}

double Payload::sum_of_squares(size_t index) const { return host_sums_.data_ptr<double>()[index]; }

void Payload::set_flag(size_t index, double value) { write(host_tail_, static_cast<int64_t>(index), value); }

void Payload::set(Word word, double value) {
  if (width(word) == 1) return write(host_tail_, position(word), value);
  auto rest = static_cast<uint64_t>(value);
  for (int64_t i = position(word), end = i + width(word); i < end; ++i, rest >>= digit_bits_)
    write(host_tail_, i, static_cast<double>(rest & ((uint64_t{1} << digit_bits_) - 1)));
}

void Payload::set_with_square(Word word, double value) {
  if (bits_of(word) != 0) value = whole_number(value);
  set(word, value);
  // The square of what is sent, not of what was meant: halves round.
  const double sent = width(word) == 1 ? read(host_tail_, position(word)) : value;
  set(square_of(word), sent * sent);
}

int Payload::flag_count(size_t index, int ranks) const {
  return static_cast<int>(std::lround(read(host_tail_, static_cast<int64_t>(index)) * ranks));
}

int Payload::count(Word word, int ranks) const { return static_cast<int>(std::lround(mean(word) * ranks)); }

double Payload::mean(Word word) const {
  if (width(word) == 1) return read(host_tail_, position(word));
  double total = 0;  // over the ranks
  for (int64_t digit = width(word); digit-- > 0;)
    total = std::ldexp(total, digit_bits_) + std::round(read(host_tail_, position(word) + digit) * ranks_);
  return total / ranks_;
}

double Payload::variance(Word word) const {
  const double average = mean(word);
  return std::max(0.0, mean(square_of(word)) - average * average);
}

bool Payload::all_equal(Word word, double own) const {
  const double tolerance = is_half(tail_.dtype()) && width(word) == 1 ? 1e-2 : 1e-5;
  const auto differs = [&](double found, double expected) {
    return std::abs(found - expected) > tolerance * std::max(1.0, std::abs(expected));
  };
  return !differs(mean(word), own) && !differs(mean(square_of(word)), own * own);
}

double Payload::countable(uint64_t number) const {
  return static_cast<double>(number % (is_half(tail_.dtype()) ? 8 : 2048));
}

}  // namespace brigade::dist
