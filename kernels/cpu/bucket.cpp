// Bucket kernels on the CPU: scaled copies in and out, sums of squares, and a probe with fixed weights.
#include <brigade/kernels/bucket.h>

#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/bucket.h>
#include <brigade/kernels/cpu/detail/conversion.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/cpu/vector/optimizer.h>
#include <brigade/kernels/cpu/vector/sums.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

namespace brigade::kernels {
namespace {

template <class T>
double as_double(T value) {
  return static_cast<double>(static_cast<compute_type<T>>(value));
}

// Copies one slot, in either direction.
template <class From, class To>
void copy_scaled(const From* from, To* to, int64_t n, double scale) {
  using C = std::common_type_t<compute_type<From>, compute_type<To>>;
  const C factor = static_cast<C>(scale);
  cpu::parallel_for(n, [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<From, To>) {
      if (factor == C(1)) {
        std::copy(from + begin, from + end, to + begin);
        return;
      }
    }
    for (int64_t i = begin; i < end; ++i)
      to[i] = static_cast<To>(factor * static_cast<C>(static_cast<compute_type<From>>(from[i])));
  });
}

void bucket_flatten_cpu(const Tensor& flat, std::span<const Tensor> tensors, std::span<const int64_t> offsets,
                        double scale) {
  const DType dtype = check_bucket("bucket_flatten", flat, Tensor(), tensors, offsets);
  visit_floating(flat.dtype(), "bucket_flatten", [&]<class To>() {
    visit_floating(dtype, "bucket_flatten", [&]<class From>() {
      for (size_t i = 0; i < tensors.size(); ++i) {
        if (!tensors[i].defined()) continue;
        copy_scaled(static_cast<const From*>(tensors[i].raw_data()), static_cast<To*>(flat.raw_data()) + offsets[i],
                    tensors[i].numel(), scale);
      }
    });
  });
}

void bucket_unflatten_cpu(const Tensor& flat, const Tensor& flags, std::span<const Tensor> tensors,
                          std::span<const int64_t> offsets, double scale) {
  const DType dtype = check_bucket("bucket_unflatten", flat, flags, tensors, offsets);
  visit_floating(flat.dtype(), "bucket_unflatten", [&]<class From>() {
    const From* flag = data_or_null<const From>(flags);
    visit_floating(dtype, "bucket_unflatten", [&]<class To>() {
      for (size_t i = 0; i < tensors.size(); ++i) {
        if (!tensors[i].defined() || (flag && as_double(flag[i]) == 0)) continue;
        copy_scaled(static_cast<const From*>(flat.raw_data()) + offsets[i], static_cast<To*>(tensors[i].raw_data()),
                    tensors[i].numel(), scale);
      }
    });
  });
}

template <class T>
double sum_of_squares_of(const T* data, int64_t n) {
  if constexpr (std::is_same_v<T, float>) return cpu::sum_of_squares(data, n);
  using C = compute_type<T>;
  // The compiler keeps the lanes of a block in registers. Each block is added in double, to avoid overflow and lost
  // digits.
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
  for (; i < n; ++i)
    total += as_double(data[i]) * as_double(data[i]);
  return total;
}

// float32 squares overflow long before their sum in double does.
template <class T>
double sum_without_overflow(const T* data, int64_t n) {
  const double sum = sum_of_squares_of(data, n);
  if (std::isfinite(sum)) return sum;
  return std::accumulate(data, data + n, 0.0,
                         [](double total, T value) { return total + as_double(value) * as_double(value); });
}

void bucket_sums_of_squares_cpu(const Tensor& flat, std::span<const int64_t> offsets, std::span<const int64_t> numels,
                                const Tensor& sums) {
  check_bucket_sums(flat, offsets, numels, sums);
  visit_floating(flat.dtype(), "bucket_sums_of_squares", [&]<class T>() {
    for (size_t i = 0; i < offsets.size(); ++i) {
      const T* data = static_cast<const T*>(flat.raw_data()) + offsets[i];
      static_cast<double*>(sums.raw_data())[i] = sum_without_overflow(data, numels[i]);
    }
  });
}

void bucket_words_cpu(const Tensor& words, const Tensor& sums, bool non_finite) {
  check_bucket_words(words, sums);
  const double* begin = static_cast<const double*>(sums.raw_data());
  const double* end = begin + sums.numel();
  non_finite = non_finite || !std::all_of(begin, end, [](double sum) { return std::isfinite(sum); });
  visit_floating(words.dtype(), "bucket_words", [&]<class T>() {
    write_bucket_words(std::accumulate(begin, end, 0.0), non_finite, static_cast<T*>(words.raw_data()));
  });
}

void bucket_probe_cpu(const Tensor& x, const Tensor& out) {
  check_bucket_probe(x, out);
  *static_cast<double*>(out.raw_data()) = probe(x);
}

constexpr auto kWeightTable = [] {
  std::array<double, kProbeWeights> table{};
  for (uint64_t i = 0; i < kProbeWeights; ++i)
    table[i] = hashed_weight(i);
  return table;
}();

}  // namespace

double sum_of_squares(const Tensor& tensor) {
  return sum_of_squares(tensor.raw_data(), tensor.dtype(), tensor.numel());
}

double sum_of_squares(const void* data, DType dtype, int64_t n) {
  return visit_floating(dtype, "sum_of_squares", [&]<class T>() {
    const double sum = sum_without_overflow(static_cast<const T*>(data), n);
    if (std::isfinite(sum) || !cpu::all_finite(dtype, data, n)) return sum;
    return std::numeric_limits<double>::max();
  });
}

bool has_non_finite(const Tensor& tensor) {
  visit_floating(tensor.dtype(), "has_non_finite", []<class T>() {});  // throws
  std::atomic<bool> found = false;
  cpu::parallel_for(tensor.numel(), [&](int64_t begin, int64_t end) {
    if (!cpu::all_finite(tensor.dtype(), cpu::element(tensor, begin), end - begin))
      found.store(true, std::memory_order_relaxed);
  });
  return found;
}

double probe(const Tensor& tensor) {
  return visit_floating(tensor.dtype(), "probe", [&]<class T>() {
    const T* data = static_cast<const T*>(tensor.raw_data());
    const int64_t n = tensor.numel();
    constexpr int64_t kLanes = 16;
    constexpr int64_t kWeights = kProbeWeights;
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += kWeights) {
      const int64_t size = std::min(kWeights, n - begin);
      std::array<double, kLanes> lanes{};
      const auto value = [&](int64_t i) { return as_double(data[begin + i]) * kWeightTable[static_cast<size_t>(i)]; };
      int64_t i = 0;
      for (; i + kLanes <= size; i += kLanes) {
        for (int64_t k = 0; k < kLanes; ++k)
          lanes[static_cast<size_t>(k)] += value(i + k);
      }
      double block = std::accumulate(lanes.begin(), lanes.end(), 0.0);
      for (; i < size; ++i)
        block += value(i);
      total += block * hashed_weight(static_cast<uint64_t>(begin / kWeights));
    }
    return total;
  });
}

constinit Kernel<void(const Tensor&, std::span<const Tensor>, std::span<const int64_t>, double)> bucket_flatten(
    "bucket_flatten", &bucket_flatten_cpu);
constinit Kernel<void(const Tensor&, const Tensor&, std::span<const Tensor>, std::span<const int64_t>, double)>
    bucket_unflatten("bucket_unflatten", &bucket_unflatten_cpu);
constinit Kernel<void(const Tensor&, std::span<const int64_t>, std::span<const int64_t>, const Tensor&)>
    bucket_sums_of_squares("bucket_sums_of_squares", &bucket_sums_of_squares_cpu);
constinit Kernel<void(const Tensor&, const Tensor&, bool)> bucket_words("bucket_words", &bucket_words_cpu);
constinit Kernel<void(const Tensor&, const Tensor&)> bucket_probe("bucket_probe", &bucket_probe_cpu);

}  // namespace brigade::kernels
