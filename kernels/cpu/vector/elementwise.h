// Elementwise loops over dense arrays, computed in float32, compiled for each instruction set.
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/core/half.h>
#include <brigade/kernels/activation.h>
#include <brigade/kernels/common/activation.h>
#include <brigade/kernels/elementwise.h>

#include <cstdint>
#include <type_traits>

namespace brigade::kernels::cpu {

// --- The arrays of loops that compute in float32.

// Dense arrays of `n` elements, all of float32, float16 or bfloat16: the inputs of the loop, and the output, which may
// be one of them.
struct FloatArrays {
  DType dtype;
  const void* const* in;
  void* out;
  int64_t n;
};

// --- Arithmetic over dense arrays, computed in float32, compiled for each instruction set.

void binary_floats(BinaryOp op, const FloatArrays& arrays);
// x op number, or number op x when `reversed`
void binary_number_floats(BinaryOp op, float number, bool reversed, const FloatArrays& arrays);
// x + factor * y
void add_scaled_floats(float factor, const FloatArrays& arrays);
// x clamped to the bounds; a NaN x is kept, and a NaN bound is the result.
void clamp_floats(float lower, float upper, const FloatArrays& arrays);
void ternary_floats(TernaryOp op, float number, const FloatArrays& arrays);
// a + weight (b - a)
void lerp_floats(float weight, const FloatArrays& arrays);

// --- Functions of float32 numbers over dense arrays, compiled for each instruction set: y[i] = f(x[i]). y may be x.

void function_floats(Function f, const float* x, float* y, int64_t n);
// The same for an input of float32 or a half type.
void unary_floats(UnaryOp op, const FloatArrays& arrays);

// --- Functions of two float32 numbers over dense arrays, compiled for each instruction set. `out` may be one of the
// inputs.

void binary_function_floats(BinaryFunction f, const float* x, const float* y, float* out, int64_t n);

// --- Activations and their gradients over dense arrays, computed in float32, compiled for each instruction set.

// f(x), or f(grad, x or y), of each element.
void activation_floats(const ActivationFunction& f, const FloatArrays& arrays);

// --- The activations with parameters over dense arrays of float32, compiled for each instruction set. `out` may be one
// of the inputs.

void activation_floats(Activation kind, const ActivationParams& params, const float* x, float* out, int64_t n);
void activation_gradient_floats(Activation kind, const ActivationParams& params, const float* grad, const float* x,
                                float* out, int64_t n);

// --- Conversions between the 16-bit floating types and float32 over dense arrays, compiled for each instruction set;
// to nearest, ties to even, NaN to NaN (core/half.h, bit for bit). The arrays do not overlap.

void widen(const float16* from, float* to, int64_t n);
void widen(const bfloat16* from, float* to, int64_t n);
void narrow(const float* from, float16* to, int64_t n);
void narrow(const float* from, bfloat16* to, int64_t n);

// n elements in their compute type: x itself, or for a half type `room`, filled with the converted elements.
template <class T>
const compute_type<T>* in_compute_type(const T* x, compute_type<T>* room, int64_t n) {
  if constexpr (std::is_same_v<T, compute_type<T>>) {
    return x;
  } else {
    widen(x, room, n);
    return room;
  }
}

// --- Elementwise addition of the data of two ranks: most of the work of an all-reduce on one machine. Compiled for
// each instruction set.

// The sums of squares of the data of two ranks. In double: finite exactly when all elements are.
struct PairSquares {
  double first = 0;
  double second = 0;
};

// x[i] = y[i] = (a[i] + b[i]) * factor for i < n, rounded after the sum and after the product. x may be a, and y may be b.
void add_pair(const float* a, const float* b, float factor, float* x, float* y, int64_t n);
// The same, and returns the sums of squares of a and b from the same pass.
PairSquares add_and_measure_pair(const float* a, const float* b, float factor, float* x, float* y, int64_t n);

}  // namespace brigade::kernels::cpu
