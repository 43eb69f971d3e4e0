// Constants, ranges and permutations for any device, and the CPU's uniform and normal numbers.
#include <brigade/kernels/factory.h>

#include <brigade/core/view.h>
#include <brigade/kernels/common/random_numbers.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/elementwise.h>

#include <cmath>
#include <numeric>

namespace brigade {

namespace kernels {
namespace {

template <class F>
void fill_from_stream(const Tensor& out, PhiloxState state, F number) {
  const Tensor target = out.is_contiguous() ? out : empty_like(out);
  visit_floating(out.dtype(), "random fill", [&]<class T>() {
    T* values = static_cast<T*>(target.raw_data());
    cpu::parallel_for(
        target.numel(),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const RandomWords words = state.block(static_cast<uint64_t>(i) / per_block<T>);
            values[i] = number.template make<T>(words, static_cast<int>(i % per_block<T>));
          }
        },
        8);
  });
  if (!out.is_contiguous()) copy(out, target);
}

void fill_uniform_cpu(const Tensor& out, PhiloxState state, double low, double high) {
  fill_from_stream(out, state, Uniform{low, high});
}

void fill_normal_cpu(const Tensor& out, PhiloxState state, double mean, double stddev) {
  fill_from_stream(out, state, Normal{mean, stddev});
}

}  // namespace

PhiloxState reserve_random(const Tensor& out, RandomGenerator* generator) {
  const uint64_t words = out.dtype() == kFloat64 ? 2 : 1;
  return (generator ? *generator : default_generator()).reserve(words * static_cast<uint64_t>(out.numel()));
}

constinit Kernel<void(const Tensor&, PhiloxState, double, double)> fill_uniform("fill_uniform", &fill_uniform_cpu);
constinit Kernel<void(const Tensor&, PhiloxState, double, double)> fill_normal("fill_normal", &fill_normal_cpu);

}  // namespace kernels

namespace {
PhiloxState reserve(RandomGenerator* generator, int64_t count) {
  return (generator ? *generator : default_generator()).reserve(static_cast<uint64_t>(count));
}

// Moves values computed on the host to the requested dtype and device.
Tensor placed(const Tensor& values, TensorOptions options) {
  Tensor result = kernels::cast(values, options.dtype);
  if (options.device == result.device()) return result;
  Tensor there = empty(result.sizes(), options);
  kernels::copy(there, result);
  return there;
}
}  // namespace

Tensor full(const Shape& sizes, Scalar value, TensorOptions options) {
  Tensor result = empty(sizes, options.or_dtype(value.dtype()));
  kernels::fill(result, value);
  return result;
}
Tensor zeros(const Shape& sizes, TensorOptions options) { return full(sizes, 0.0, options); }
Tensor ones(const Shape& sizes, TensorOptions options) { return full(sizes, 1.0, options); }
Tensor full_like(const Tensor& tensor, Scalar value) { return full(tensor.sizes(), value, tensor.options()); }
Tensor zeros_like(const Tensor& tensor) { return full_like(tensor, 0); }
Tensor ones_like(const Tensor& tensor) { return full_like(tensor, 1); }

namespace {
// start, start + step, ... below end; T can hold these numbers.
template <class T>
Tensor range(Scalar start, Scalar end, Scalar step) {
  const T first = start.to<T>(), by = step.to<T>();
  const double length = end.to<double>() - start.to<double>();
  if (by == T(0) || length / step.to<double>() < 0) {
    throw ValueError("arange: a step of {} does not lead from {} to {}", step, start, end);
  }
  const double count = std::ceil(length / step.to<double>());
  if (!(count < 0x1p63)) {
    throw ValueError(
        "arange: expected finite numbers and fewer than 2^63 of them, got a start of {}, an end of {} and a step of {}",
        start, end, step);
  }
  int64_t number = static_cast<int64_t>(count);
  if constexpr (std::is_integral_v<T>) {
    const __int128_t way = static_cast<__int128_t>(end.to<T>()) - first;
    number = static_cast<int64_t>(way / by + (way % by != 0 ? 1 : 0));
  }
  const Tensor values = empty({number}, dtype_of<T>);
  T* const numbers = values.data_ptr<T>();
  for (int64_t i = 0; i < values.numel(); ++i)
    numbers[i] = first + static_cast<T>(i) * by;
  return values;
}
}  // namespace

Tensor arange(Scalar start, Scalar end, Scalar step, TensorOptions options) {
  const bool is_real = start.is_floating_point() || end.is_floating_point() || step.is_floating_point();
  const Tensor values = is_real ? range<double>(start, end, step) : range<int64_t>(start, end, step);
  return placed(values, options.or_dtype(is_real ? kFloat32 : kInt64));
}

Tensor linspace(double start, double end, int64_t steps, TensorOptions options) {
  if (steps < 0) throw ValueError("linspace: the count must not be negative, got {}", steps);
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  const Tensor values = empty({steps}, kFloat64);
  double* const numbers = values.data_ptr<double>();
  // Computed from both ends, so that the last number is exactly `end` and the result is symmetric.
  for (int64_t i = 0; i < steps; ++i)
    numbers[i] =
        i < steps - steps / 2 ? start + static_cast<double>(i) * step : end - static_cast<double>(steps - 1 - i) * step;
  return placed(values, options);
}

Tensor eye(int64_t n, TensorOptions options) { return eye(n, n, options); }

Tensor eye(int64_t rows, int64_t columns, TensorOptions options) {
  if (rows < 0 || columns < 0) {
    throw ValueError("eye: sizes must not be negative, got {} and {}", rows, columns);
  }
  Tensor result = zeros({rows, columns}, options);
  if (result.numel() > 0) kernels::fill(view::as_strided(result, {std::min(rows, columns)}, {columns + 1}, 0), 1);
  return result;
}

Tensor rand(const Shape& sizes, TensorOptions options, RandomGenerator* generator) {
  Tensor result = empty(sizes, options);
  kernels::fill_uniform(result, kernels::reserve_random(result, generator), 0, 1);
  return result;
}

Tensor randn(const Shape& sizes, TensorOptions options, RandomGenerator* generator) {
  Tensor result = empty(sizes, options);
  kernels::fill_normal(result, kernels::reserve_random(result, generator), 0, 1);
  return result;
}

Tensor randint(int64_t low, int64_t high, const Shape& sizes, TensorOptions options, RandomGenerator* generator) {
  if (high <= low) throw ValueError("randint: expected low < high, got {} and {}", low, high);
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const Tensor values = empty(sizes, kInt64);
  int64_t* const numbers = values.data_ptr<int64_t>();
  const PhiloxState state = reserve(generator, 4 * values.numel());
  for (int64_t i = 0; i < values.numel(); ++i) {
    const auto words = state.block(static_cast<uint64_t>(i));
    const uint64_t random = (static_cast<uint64_t>(words[0]) << 32) | words[1];
    const auto above = static_cast<uint64_t>((static_cast<__uint128_t>(random) * range) >> 64);
    numbers[i] = static_cast<int64_t>(static_cast<uint64_t>(low) + above);
  }
  return placed(values, options);
}

Tensor randperm(int64_t n, RandomGenerator* generator) {
  if (n < 0) throw ValueError("randperm: the count must not be negative, got {}", n);
  const Tensor result = empty({n}, kInt64);
  int64_t* const order = result.data_ptr<int64_t>();
  std::iota(order, order + n, int64_t{0});
  const PhiloxState state = reserve(generator, 4 * n);
  for (int64_t i = n - 1; i > 0; --i) {
    const auto words = state.block(static_cast<uint64_t>(i));
    const uint64_t random = (static_cast<uint64_t>(words[0]) << 32) | words[1];
    const auto j = static_cast<uint64_t>((static_cast<__uint128_t>(random) * static_cast<uint64_t>(i + 1)) >> 64);
    std::swap(order[i], order[j]);
  }
  return result;
}

}  // namespace brigade
