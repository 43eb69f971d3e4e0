// Device-independent parts of the elementwise kernels: checks, dtypes, allocation of results, and functors.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace brigade::kernels {

// --- Arithmetic, comparisons and unary functions; their functors are in elementwise_functors.h.

// Operands in the dtype they are computed in (not broadcast), and the result, not filled.
struct Operands {
  Tensor x, y, out;
};
// Throws DTypeError if one of the two is bool.
void check_difference(DType a, DType b);
// For a op b and comparisons. Throw DeviceError, DTypeError, ShapeError.
Operands prepare_binary(const Tensor& a, const Tensor& b, BinaryOp op);
Operands prepare_compare(const Tensor& a, const Tensor& b);
// For a op scalar; y is undefined.
Operands prepare_binary_scalar(const Tensor& a, Scalar scalar, BinaryOp op);

// For bool tensors: Square gives int64, Sign a copy. Throws DTypeError for the other ops.
Tensor unary_of_bool(const Tensor& x, UnaryOp op);

// Throws ShapeError unless x broadcasts to the shape of out.
void check_fits(const Tensor& out, const Tensor& x, const char* what);
// Throws ShapeError unless the gradient has the shape and dtype of x.
void check_gradient_like(const Tensor& grad, const Tensor& x, const char* what);
// out = x, cast and broadcast, for tensors on two devices.
void copy_between_devices(const Tensor& out, const Tensor& x);

// --- Functions of two numbers: functors for CPU and CUDA loops, and argument checks.

// Throw DeviceError, DTypeError, ShapeError.
Operands prepare_binary_function(const Tensor& a, const Tensor& b, BinaryFunction f);
Operands prepare_binary_function_scalar(const Tensor& a, Scalar number, BinaryFunction f);

// Exponentiation by squaring.
template <class C>
BRIGADE_HOST_DEVICE C integer_power(C x, C y) {
  if constexpr (std::is_signed_v<C>) {
    if (y < 0) return x == 1 ? C(1) : x == C(-1) ? (y % 2 == 0 ? C(1) : C(-1)) : C(0);
  }
  // Unsigned arithmetic, where overflow wraps around.
  uint64_t result = 1;
  uint64_t square = static_cast<uint64_t>(x);
  for (uint64_t rest = static_cast<uint64_t>(y); rest; rest >>= 1) {
    if (rest & 1) result *= square;
    square *= square;
  }
  return static_cast<C>(result);
}

template <BinaryFunction f>
struct BinaryFunctor {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x, C y) const {
    if constexpr (std::is_integral_v<C>) {
      if constexpr (f == BinaryFunction::Pow) return integer_power(x, y);
      if constexpr (f == BinaryFunction::Atan2) return C(0);  // computed in float32
      if (y == 0) return C(0);
      if constexpr (std::is_signed_v<C>) {
        if (y == -1) return C(0);  // the quotient of the lowest number would overflow
      }
      const C rest = static_cast<C>(x % y);
      if constexpr (f == BinaryFunction::Remainder && std::is_signed_v<C>) {
        return rest != 0 && (rest < 0) != (y < 0) ? static_cast<C>(rest + y) : rest;
      }
      return rest;
    } else {
      if constexpr (f == BinaryFunction::Pow) return std::pow(x, y);
      if constexpr (f == BinaryFunction::Atan2) return std::atan2(x, y);
      const C rest = std::fmod(x, y);
      if constexpr (f == BinaryFunction::Remainder) return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
      return rest;
    }
  }
};

// Selects the function at run time.
struct AnyBinaryFunction {
  BinaryFunction f;
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x, C y) const {
    switch (f) {
      case BinaryFunction::Pow: return BinaryFunctor<BinaryFunction::Pow>{}(x, y);
      case BinaryFunction::Atan2: return BinaryFunctor<BinaryFunction::Atan2>{}(x, y);
      case BinaryFunction::Remainder: return BinaryFunctor<BinaryFunction::Remainder>{}(x, y);
      case BinaryFunction::Fmod: break;
    }
    return BinaryFunctor<BinaryFunction::Fmod>{}(x, y);
  }
};

// --- Three operands: functors and argument checks.

struct TernaryOperands {
  Tensor a, b, c;  // in the result's dtype, not broadcast
  Tensor out;      // not filled
};
TernaryOperands prepare_ternary(const Tensor& a, const Tensor& b, const Tensor& c, TernaryOp op);
Operands prepare_lerp(const Tensor& a, const Tensor& b);

// Computed from the nearer end, so that a weight of 1 gives exactly b.
template <class C>
BRIGADE_HOST_DEVICE C lerp_of(C a, C b, C weight) {
  return (weight < C(0) ? -weight : weight) < C(0.5) ? a + weight * (b - a) : b - (b - a) * (C(1) - weight);
}

template <class C>
struct Ternary {
  TernaryOp op;
  C number;
  BRIGADE_HOST_DEVICE C operator()(C a, C b, C c) const {
    if (op == TernaryOp::Addcmul) return a + number * b * c;
    if (op == TernaryOp::Addcdiv) return a + number * b / c;
    return lerp_of(a, b, c);
  }
};
template <class C>
struct LerpWith {
  C weight;
  BRIGADE_HOST_DEVICE C operator()(C a, C b) const { return lerp_of(a, b, weight); }
};

// --- Clamp.

// C: the compute type. A NaN fails every comparison: a NaN x is kept, a NaN bound is returned.
template <class C>
struct Clamp {
  C lower, upper;
  BRIGADE_HOST_DEVICE C operator()(C x) const {
    x = x != x || x >= lower ? x : lower;
    return x != x || x <= upper ? x : upper;
  }
};
template <class C>
struct ClampBackward {
  C lower, upper;
  bool has_lower, has_upper;
  BRIGADE_HOST_DEVICE C operator()(C grad, C x) const {
    return (!has_lower || x > lower) && (!has_upper || x < upper) ? grad : C(0);
  }
};

// A bound as an element, saturated to the range of an integer type.
template <class C>
C border(Scalar number) {
  if constexpr (std::is_integral_v<C>) {
    // Integer clamps have integer bounds, or infinite ones where a bound is missing.
    constexpr C kLowest = std::numeric_limits<C>::lowest(), kHighest = std::numeric_limits<C>::max();
    if (number.is_floating_point()) return number.to<double>() < 0 ? kLowest : kHighest;
    return static_cast<C>(std::clamp(number.to<int64_t>(), int64_t{kLowest}, int64_t{kHighest}));
  } else {
    return number.to<C>();
  }
}
template <class C>
Clamp<C> clamping(const Borders& borders) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {border<C>(borders.lower.value_or(-kInfinity)), border<C>(borders.upper.value_or(kInfinity))};
}
template <class C>
ClampBackward<C> clamping_backward(const Borders& borders) {
  return {borders.lower.value_or(0).template to<C>(), borders.upper.value_or(0).template to<C>(),
          borders.lower.has_value(), borders.upper.has_value()};
}

struct ClampPlan {
  Tensor x, out;  // x in the dtype of the result, which is not filled
};
ClampPlan prepare_clamp(const Tensor& x, const Borders& borders);

// --- Selection by where.

struct ChoicePlan {
  Tensor condition;  // bool
  Tensor a, b;       // in the result's dtype, not broadcast; undefined for a number
  Tensor out;        // not filled
};
ChoicePlan prepare_where(const Tensor& condition, const Choice& a, const Choice& b);

// Calls body with an unsigned type of the size of an element: `where` is the same for all dtypes of one size.
template <class Body>
void visit_words(DType dtype, Body&& body) {
  switch (itemsize(dtype)) {
    case 8: body.template operator()<uint64_t>(); break;
    case 4: body.template operator()<uint32_t>(); break;
    case 2: body.template operator()<uint16_t>(); break;
    default: body.template operator()<uint8_t>(); break;
  }
}

// The bits of a number as an element of `dtype`.
template <class Word>
Word word_of(Scalar number, DType dtype) {
  Word word{};
  visit_dtype(dtype, [&]<class T>() {
    const T element = static_cast<T>(number.to<compute_type<T>>());
    if constexpr (sizeof(T) == sizeof(Word)) std::memcpy(&word, &element, sizeof(T));
  });
  return word;
}

// --- Triangles of matrices.

struct TrianglePlan {
  int64_t rows = 0, columns = 0, diagonal = 0;
  bool upper = false;

  // The elements [first, last) of a row that are kept.
  BRIGADE_HOST_DEVICE int64_t first(int64_t row) const {
    const int64_t at = row + diagonal;
    return !upper || at < 0 ? 0 : at < columns ? at : columns;
  }
  BRIGADE_HOST_DEVICE int64_t last(int64_t row) const {
    const int64_t end = row + diagonal + 1;
    return upper || end > columns ? columns : end < 0 ? 0 : end;
  }
};

// Throws ShapeError.
inline TrianglePlan plan_triangle(const Tensor& x, Triangle part, int64_t diagonal) {
  if (x.dim() < 2) {
    throw ShapeError("{}: expected a matrix, or a batch of them, got {}", part == Triangle::Upper ? "triu" : "tril",
                     x.sizes());
  }
  TrianglePlan plan{x.size(-2), x.size(-1), diagonal, part == Triangle::Upper};
  plan.diagonal = std::clamp(diagonal, -plan.rows, plan.columns);  // values beyond the corners have no further effect
  return plan;
}

}  // namespace brigade::kernels
