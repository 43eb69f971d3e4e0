#include <brigade/kernels/factory.h>

#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/detail/random_numbers.h>
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
            const double value = number(state.block(static_cast<uint64_t>(i) / 4), static_cast<int>(i % 4));
            values[i] = static_cast<T>(static_cast<compute_type<T>>(value));
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

constinit Kernel<void(const Tensor&, PhiloxState, double, double)> fill_uniform("fill_uniform", &fill_uniform_cpu);
constinit Kernel<void(const Tensor&, PhiloxState, double, double)> fill_normal("fill_normal", &fill_normal_cpu);

}  // namespace kernels

namespace {
PhiloxState reserve(Generator* generator, int64_t count) {
  return (generator ? *generator : default_generator()).reserve(static_cast<uint64_t>(count));
}

// Values that the host has computed, in the dtype and on the device that are asked for.
Tensor placed(const Tensor& values, TensorOptions options) {
  Tensor result = kernels::cast(values, options.dtype);
  if (options.device == result.device()) return result;
  Tensor there = empty(result.sizes(), options);
  kernels::copy(there, result);
  return there;
}
}  // namespace

Tensor full(const Shape& sizes, double value, TensorOptions options) {
  Tensor result = empty(sizes, options);
  kernels::fill(result, value);
  return result;
}
Tensor zeros(const Shape& sizes, TensorOptions options) { return full(sizes, 0, options); }
Tensor ones(const Shape& sizes, TensorOptions options) { return full(sizes, 1, options); }
Tensor full_like(const Tensor& tensor, double value) { return full(tensor.sizes(), value, tensor.options()); }
Tensor zeros_like(const Tensor& tensor) { return full_like(tensor, 0); }
Tensor ones_like(const Tensor& tensor) { return full_like(tensor, 1); }

Tensor arange(double start, double end, double step, TensorOptions options) {
  if (step == 0 || (end - start) / step < 0) {
    throw ValueError("arange: a step of " + std::to_string(step) + " does not lead from " + std::to_string(start) +
                     " to " + std::to_string(end));
  }
  std::vector<double> values;
  const auto count = static_cast<int64_t>(std::ceil((end - start) / step));
  for (int64_t i = 0; i < count; ++i)
    values.push_back(start + static_cast<double>(i) * step);
  return placed(tensor(values, {count}), options);
}

Tensor linspace(double start, double end, int64_t steps, TensorOptions options) {
  if (steps < 0) throw ValueError("linspace: the count must not be negative, got " + std::to_string(steps));
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  std::vector<double> values;
  // From both ends, so that the last number is `end` itself and the middle is as near to one end as to the other.
  for (int64_t i = 0; i < steps; ++i)
    values.push_back(2 * i < steps ? start + static_cast<double>(i) * step
                                   : end - static_cast<double>(steps - 1 - i) * step);
  if (steps == 1) values[0] = start;
  return placed(tensor(values, {steps}), options);
}

Tensor eye(int64_t n, TensorOptions options) { return eye(n, n, options); }

Tensor eye(int64_t rows, int64_t columns, TensorOptions options) {
  if (rows < 0 || columns < 0) {
    throw ValueError("eye: sizes must not be negative, got " + std::to_string(rows) + " and " +
                     std::to_string(columns));
  }
  std::vector<double> values(static_cast<size_t>(rows * columns), 0.0);
  for (int64_t i = 0; i < std::min(rows, columns); ++i)
    values[static_cast<size_t>(i * columns + i)] = 1;
  return placed(tensor(values, {rows, columns}), options);
}

Tensor rand(const Shape& sizes, TensorOptions options, Generator* generator) {
  Tensor result = empty(sizes, options);
  kernels::fill_uniform(result, reserve(generator, result.numel()), 0, 1);
  return result;
}

Tensor randn(const Shape& sizes, TensorOptions options, Generator* generator) {
  Tensor result = empty(sizes, options);
  kernels::fill_normal(result, reserve(generator, result.numel()), 0, 1);
  return result;
}

Tensor randint(int64_t low, int64_t high, const Shape& sizes, TensorOptions options, Generator* generator) {
  if (high <= low)
    throw ValueError("randint: expected low < high, got " + std::to_string(low) + " and " + std::to_string(high));
  const auto range = static_cast<uint64_t>(high - low);
  const int64_t count = sizes.numel();
  const PhiloxState state = reserve(generator, 4 * count);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) {
    const auto words = state.block(static_cast<uint64_t>(i));
    const uint64_t random = (static_cast<uint64_t>(words[0]) << 32) | words[1];
    values.push_back(low +
                     static_cast<int64_t>(static_cast<uint64_t>((static_cast<__uint128_t>(random) * range) >> 64)));
  }
  return placed(tensor(values, sizes), options);
}

Tensor randperm(int64_t n, Generator* generator) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  const PhiloxState state = reserve(generator, 4 * n);
  for (int64_t i = n - 1; i > 0; --i) {
    const auto words = state.block(static_cast<uint64_t>(i));
    const uint64_t random = (static_cast<uint64_t>(words[0]) << 32) | words[1];
    const auto j = static_cast<uint64_t>((static_cast<__uint128_t>(random) * static_cast<uint64_t>(i + 1)) >> 64);
    std::swap(order[static_cast<size_t>(i)], order[j]);
  }
  return tensor(order, {n});
}

}  // namespace brigade
