#include <brigade/dist/payload.h>

#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

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

double sum_of_squares(const Tensor& tensor) {
  return visit_floating(tensor.dtype(), "sum_of_squares", [&]<class T>() {
    using C = compute_type<T>;
    const T* data = static_cast<const T*>(tensor.raw_data());
    const int64_t n = tensor.numel();
    // Blocks of lanes that the compiler keeps in registers; each block goes to double, so that nothing overflows early
    // or is lost.
    constexpr int64_t kLanes = 16;
    constexpr int64_t kBlock = 4096;
    double total = 0;
    int64_t i = 0;
    while (i + kLanes <= n) {
      const int64_t end = std::min(n - n % kLanes, i + kBlock);
      std::array<C, kLanes> lanes{};
      for (; i < end; i += kLanes) {
        for (int64_t k = 0; k < kLanes; ++k) {
          const C value = static_cast<C>(data[i + k]);
          lanes[static_cast<size_t>(k)] += value * value;
        }
      }
      for (const C lane : lanes)
        total += static_cast<double>(lane);
    }
    for (; i < n; ++i) {
      const double value = static_cast<double>(static_cast<C>(data[i]));
      total += value * value;
    }
    return total;
  });
}

bool has_non_finite(const Tensor& tensor) {
  return visit_floating(tensor.dtype(), "has_non_finite", [&]<class T>() {
    const T* data = static_cast<const T*>(tensor.raw_data());
    return std::any_of(data, data + tensor.numel(), [](T value) {
      return !std::isfinite(static_cast<double>(static_cast<compute_type<T>>(value)));
    });
  });
}

namespace {

// Fibonacci hashing: the top bit of i times 2^64 / golden ratio.
constexpr double sign_of(uint64_t i) noexcept { return ((i + 1) * 0x9E3779B97F4A7C15U) >> 63 ? 1.0 : -1.0; }

constexpr int64_t kSigns = 512;
constexpr auto kSignTable = [] {
  std::array<double, kSigns> table{};
  for (uint64_t i = 0; i < kSigns; ++i)
    table[i] = sign_of(i);
  return table;
}();

}  // namespace

double probe(const Tensor& tensor) {
  return visit_floating(tensor.dtype(), "probe", [&]<class T>() {
    const T* data = static_cast<const T*>(tensor.raw_data());
    const int64_t n = tensor.numel();
    constexpr int64_t kLanes = 16;
    double total = 0;
    // Each block has the same signs inside and one of its own.
    for (int64_t begin = 0; begin < n; begin += kSigns) {
      const int64_t size = std::min(kSigns, n - begin);
      std::array<double, kLanes> lanes{};
      const auto value = [&](int64_t i) {
        return static_cast<double>(static_cast<compute_type<T>>(data[begin + i])) * kSignTable[static_cast<size_t>(i)];
      };
      int64_t i = 0;
      for (; i + kLanes <= size; i += kLanes) {
        for (int64_t k = 0; k < kLanes; ++k)
          lanes[static_cast<size_t>(k)] += value(i + k);
      }
      double block = std::accumulate(lanes.begin(), lanes.end(), 0.0);
      for (; i < size; ++i)
        block += value(i);
      total += block * sign_of(static_cast<uint64_t>(begin / kSigns));
    }
    return total;
  });
}

}  // namespace brigade::dist
