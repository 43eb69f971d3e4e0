#include <brigade/dist/payload.h>

#include <brigade/core/view.h>
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

}  // namespace

Payload::Payload(ProcessGroup& group, const BucketLayout& layout)
    : flags_(static_cast<int64_t>(layout.parameters.size())) {
  const int64_t total = layout.gradient_numel + flags_ + kWords;
  whole_ = group.allocate(total, layout.dtype);
  kernels::fill(whole_, 0.0);  // padding is reduced too and must stay finite
  gradients_ = view::slice(whole_, 0, 0, layout.gradient_numel);
  tail_ = view::slice(whole_, 0, layout.gradient_numel, total);
}

void Payload::set_flag(size_t index, double value) { write(tail_, static_cast<int64_t>(index), value); }

void Payload::set(Word word, double value) { write(tail_, position(word), value); }

void Payload::set_with_square(Word word, double value) {
  write(tail_, position(word), value);
  // The square of what is sent, not of what was meant: halves round.
  const double sent = read(tail_, position(word));
  write(tail_, position(word) + 1, sent * sent);
}

int Payload::flag_count(size_t index, int ranks) const {
  return static_cast<int>(std::lround(read(tail_, static_cast<int64_t>(index)) * ranks));
}

int Payload::count(Word word, int ranks) const { return static_cast<int>(std::lround(mean(word) * ranks)); }

double Payload::mean(Word word) const { return read(tail_, position(word)); }

double Payload::variance(Word word) const {
  const double average = mean(word);
  return std::max(0.0, read(tail_, position(word) + 1) - average * average);
}

bool Payload::all_equal(Word word, double own) const {
  const double tolerance = is_half(tail_.dtype()) ? 1e-2 : 1e-5;
  const auto differs = [&](double found, double expected) {
    return std::abs(found - expected) > tolerance * std::max(1.0, std::abs(expected));
  };
  return !differs(mean(word), own) && !differs(read(tail_, position(word) + 1), own * own);
}

double Payload::countable(uint64_t number) const {
  return static_cast<double>(number % (is_half(tail_.dtype()) ? 8 : 2048));
}

}  // namespace brigade::dist
