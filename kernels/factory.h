// Tensors filled with constants, ranges and random numbers. Random fills use the calling thread's generator unless one
// is given; the same seed gives the same values on every device.
#pragma once

#include <brigade/core/factory.h>
#include <brigade/core/random.h>
#include <brigade/kernels/kernel.h>

namespace brigade {

Tensor zeros(const Shape& sizes, TensorOptions options = {});
Tensor ones(const Shape& sizes, TensorOptions options = {});
// The dtype follows the value (float32, int64 or bool) unless options give one: full({2}, 3) is int64, full({2}, 3.0)
// float32.
Tensor full(const Shape& sizes, Scalar value, TensorOptions options = {});
Tensor zeros_like(const Tensor& tensor);
Tensor ones_like(const Tensor& tensor);
Tensor full_like(const Tensor& tensor, Scalar value);
// start, start + step, ... below end. The dtype is that of options, else int64, or float32 when one of the numbers is
// floating: arange(5), arange(0, 1, 0.25). Throws ValueError for a zero or wrong-signed step, and for numbers that are
// not finite.
Tensor arange(Scalar start, Scalar end, Scalar step = 1, TensorOptions options = {});
// 0, 1, ... below end.
inline Tensor arange(Scalar end, TensorOptions options = {}) { return arange(0, end, 1, options); }
// `steps` evenly spaced numbers from start to end, both included; a single number is start. Throws ValueError for a
// negative count.
Tensor linspace(double start, double end, int64_t steps, TensorOptions options = {});
// Ones on the diagonal, zeros elsewhere: [n, n] or [rows, columns]. Throws ValueError for a negative size.
Tensor eye(int64_t n, TensorOptions options = {});
Tensor eye(int64_t rows, int64_t columns, TensorOptions options = {});
// Uniform in [0, 1), with as many random bits as the significand of the dtype holds: 53, 24, 11, 8.
Tensor rand(const Shape& sizes, TensorOptions options = {}, RandomGenerator* generator = nullptr);
// Standard normal (Box-Muller on Philox words).
Tensor randn(const Shape& sizes, TensorOptions options = {}, RandomGenerator* generator = nullptr);
// Integers in [low, high).
Tensor randint(int64_t low, int64_t high, const Shape& sizes, TensorOptions options = {kInt64},
               RandomGenerator* generator = nullptr);
// Integers in [0, high).
inline Tensor randint(int64_t high, const Shape& sizes, TensorOptions options = {kInt64}) {
  return randint(0, high, sizes, options);
}
inline Tensor rand_like(const Tensor& tensor) { return rand(tensor.sizes(), tensor.options()); }
inline Tensor randn_like(const Tensor& tensor) { return randn(tensor.sizes(), tensor.options()); }
// A random permutation of 0..n-1 (int64). Throws ValueError for a negative count.
Tensor randperm(int64_t n, RandomGenerator* generator = nullptr);

namespace kernels {
// Reserves the part of the random stream that filling `out` takes: one word per element, two for float64. Uses the
// calling thread's generator unless one is given.
PhiloxState reserve_random(const Tensor& out, RandomGenerator* generator = nullptr);
extern Kernel<void(const Tensor& out, PhiloxState state, double low, double high)> fill_uniform;
extern Kernel<void(const Tensor& out, PhiloxState state, double mean, double stddev)> fill_normal;
}  // namespace kernels

}  // namespace brigade
