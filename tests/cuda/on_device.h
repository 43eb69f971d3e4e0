// Device tensors for tests, and comparisons with the CPU.
#pragma once

#include <brigade/core/factory.h>
#include <brigade/core/random.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <near.h>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace brigade::test {

inline const Device kDevice(kCUDA, 0);

// Keeps the strides if the source is a view of its whole storage; otherwise the copy is dense.
inline Tensor on_device(const Tensor& x) {
  Tensor result = empty(x.sizes(), {x.dtype(), kDevice});
  kernels::copy(result, x);
  return result;
}

inline Tensor on_cpu(const Tensor& x) {
  Tensor result = empty(x.sizes(), x.dtype());
  kernels::copy(result, x);
  return result;
}

// Converts to float64 on the CPU; an undefined tensor stays undefined.
inline Tensor exact(const Tensor& x) { return x.defined() ? kernels::cast(on_cpu(x), kFloat64) : x; }

// The same numbers, stored `elements` past the start of the allocation.
inline Tensor shifted(const Tensor& x, int64_t elements) {
  const Tensor room = empty({x.numel() + elements}, x.options());
  const Tensor result = view::as_strided(room, x.sizes(), contiguous_strides(x.sizes()), elements);
  kernels::copy(result, x);
  return result;
}

// Normal numbers (whole numbers for integers), deterministic.
inline Tensor numbers(const Shape& sizes, DType dtype, uint64_t seed = 1) {
  RandomGenerator generator(seed);
  const Tensor x = empty(sizes, kFloat64);
  kernels::fill_normal(x, generator.reserve(static_cast<uint64_t>(x.numel())), 0, dtype == kUInt8 ? 1 : 3);
  if (dtype == kUInt8 || dtype == kBool) kernels::copy(x, kernels::unary(x, kernels::UnaryOp::Abs));
  return kernels::cast(x, dtype);
}

// The largest difference relative to the larger of 1 and the CPU's value; infinite if only one value is NaN.
inline double difference(const Tensor& found, const Tensor& expected) {
  const auto a = on_cpu(found).to_vector<double>();
  const auto b = expected.to_vector<double>();
  double worst = found.sizes() == expected.sizes() && found.dtype() == expected.dtype() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double distance = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i]));
    worst = worse(worst, distance);
  }
  return worst;
}

// One rounding of the dtype, plus the error of functions that the device implements differently.
inline double tolerance(DType dtype) {
  switch (dtype) {
    case kFloat64: return 1e-14;
    case kFloat32: return 1e-6;
    case kFloat16: return 1e-3;
    case kBFloat16: return 8e-3;
    default: return 0;
  }
}

inline const std::vector<DType> kAllDTypes{kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kUInt8, kBool};
inline const std::vector<DType> kFloatingDTypes{kFloat64, kFloat32, kFloat16, kBFloat16};

}  // namespace brigade::test
