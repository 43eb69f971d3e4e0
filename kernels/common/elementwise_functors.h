// Functors of the elementwise kernels, for CPU and CUDA loops.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/kernels/elementwise.h>

#include <cmath>
#include <type_traits>
#include <utility>

namespace brigade::kernels {

struct Add {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x, C y) const {
    return static_cast<C>(x + y);
  }
};
struct Sub {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x, C y) const {
    return static_cast<C>(x - y);
  }
};
struct Mul {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x, C y) const {
    return static_cast<C>(x * y);
  }
};
struct Div {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x, C y) const {
    return static_cast<C>(x / y);
  }
};
// A NaN in either operand propagates, as in PyTorch.
struct Maximum {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x, C y) const {
    return x != x || x > y ? x : y;
  }
};
struct Minimum {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x, C y) const {
    return x != x || x < y ? x : y;
  }
};

// Calls body with the functor of the operation, so that a loop is compiled once per operation and
// dtype.
template <class Body>
void with_binary(BinaryOp op, Body&& body) {
  switch (op) {
    case BinaryOp::Add: body(Add{}); break;
    case BinaryOp::Sub: body(Sub{}); break;
    case BinaryOp::Mul: body(Mul{}); break;
    case BinaryOp::Div: body(Div{}); break;
    case BinaryOp::Maximum: body(Maximum{}); break;
    case BinaryOp::Minimum: body(Minimum{}); break;
  }
}

// Selects the operation at run time: fewer kernels to compile, for dtypes and operations that are memory-bound anyway.
struct AnyBinary {
  BinaryOp op;
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x, C y) const {
    switch (op) {
      case BinaryOp::Add: return Add{}(x, y);
      case BinaryOp::Sub: return Sub{}(x, y);
      case BinaryOp::Mul: return Mul{}(x, y);
      case BinaryOp::Div: return Div{}(x, y);
      case BinaryOp::Maximum: return Maximum{}(x, y);
      case BinaryOp::Minimum: break;
    }
    return Minimum{}(x, y);
  }
};

// f(x, number), or f(number, x).
template <class F, class C>
struct WithNumber {
  F f;
  C number;
  bool reversed;
  BRIGADE_HOST_DEVICE C operator()(C x) const { return reversed ? f(number, x) : f(x, number); }
};

template <CompareOp op>
struct Compare {
  template <class C>
  BRIGADE_HOST_DEVICE bool operator()(C x, C y) const {
    if constexpr (op == CompareOp::Equal) return x == y;
    if constexpr (op == CompareOp::NotEqual) return x != y;
    if constexpr (op == CompareOp::Less) return x < y;
    if constexpr (op == CompareOp::LessEqual) return x <= y;
    if constexpr (op == CompareOp::Greater) return x > y;
    return x >= y;
  }
};

template <class Body>
void with_compare(CompareOp op, Body&& body) {
  switch (op) {
    case CompareOp::Equal: body(Compare<CompareOp::Equal>{}); break;
    case CompareOp::NotEqual: body(Compare<CompareOp::NotEqual>{}); break;
    case CompareOp::Less: body(Compare<CompareOp::Less>{}); break;
    case CompareOp::LessEqual: body(Compare<CompareOp::LessEqual>{}); break;
    case CompareOp::Greater: body(Compare<CompareOp::Greater>{}); break;
    case CompareOp::GreaterEqual: body(Compare<CompareOp::GreaterEqual>{}); break;
  }
}

struct AnyCompare {
  CompareOp op;
  template <class C>
  BRIGADE_HOST_DEVICE bool operator()(C x, C y) const {
    switch (op) {
      case CompareOp::Equal: return Compare<CompareOp::Equal>{}(x, y);
      case CompareOp::NotEqual: return Compare<CompareOp::NotEqual>{}(x, y);
      case CompareOp::Less: return Compare<CompareOp::Less>{}(x, y);
      case CompareOp::LessEqual: return Compare<CompareOp::LessEqual>{}(x, y);
      case CompareOp::Greater: return Compare<CompareOp::Greater>{}(x, y);
      case CompareOp::GreaterEqual: break;
    }
    return Compare<CompareOp::GreaterEqual>{}(x, y);
  }
};

// Compares in the type of the number: double, so that integer tensors compare correctly with 0.5, or int64 for
// integers.
template <class F, class Number>
struct CompareWithNumber {
  F f;
  Number number;
  template <class C>
  BRIGADE_HOST_DEVICE bool operator()(C x) const {
    return f(static_cast<Number>(x), number);
  }
};

template <UnaryOp op>
struct Unary {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x) const {
    if constexpr (op == UnaryOp::Neg) return static_cast<C>(-x);
    if constexpr (op == UnaryOp::Abs) {
      if constexpr (std::is_floating_point_v<C>) {
        return std::fabs(x);  // of -0 too
      } else if constexpr (std::is_unsigned_v<C>) {
        return x;
      } else {
        return x < C(0) ? static_cast<C>(-x) : x;
      }
    }
    if constexpr (op == UnaryOp::Exp) return std::exp(x);
    if constexpr (op == UnaryOp::Log) return std::log(x);
    if constexpr (op == UnaryOp::Sqrt) return std::sqrt(x);
    if constexpr (op == UnaryOp::Reciprocal) return C(1) / x;
    if constexpr (op == UnaryOp::Square) return static_cast<C>(x * x);
    if constexpr (op == UnaryOp::Sign) {
      if constexpr (std::is_unsigned_v<C>) {
        return static_cast<C>(x != C(0));
      } else {
        return static_cast<C>((C(0) < x) - (x < C(0)));
      }
    }
  }
};

// Only the operations that integers have as well.
template <class Body>
void with_unary_any(UnaryOp op, Body&& body) {
  switch (op) {
    case UnaryOp::Neg: body(Unary<UnaryOp::Neg>{}); break;
    case UnaryOp::Abs: body(Unary<UnaryOp::Abs>{}); break;
    case UnaryOp::Square: body(Unary<UnaryOp::Square>{}); break;
    default: body(Unary<UnaryOp::Sign>{}); break;
  }
}
template <class Body>
void with_unary(UnaryOp op, Body&& body) {
  switch (op) {
    case UnaryOp::Exp: body(Unary<UnaryOp::Exp>{}); break;
    case UnaryOp::Log: body(Unary<UnaryOp::Log>{}); break;
    case UnaryOp::Sqrt: body(Unary<UnaryOp::Sqrt>{}); break;
    case UnaryOp::Reciprocal: body(Unary<UnaryOp::Reciprocal>{}); break;
    default: with_unary_any(op, body); break;
  }
}

// --- The elementary functions of the standard library (or of CUDA).

template <Function f>
struct Elementary {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x) const {
    if constexpr (f == Function::Rsqrt) return C(1) / std::sqrt(x);
    if constexpr (f == Function::Sin) return std::sin(x);
    if constexpr (f == Function::Cos) return std::cos(x);
    if constexpr (f == Function::Tan) return std::tan(x);
    if constexpr (f == Function::Asin) return std::asin(x);
    if constexpr (f == Function::Acos) return std::acos(x);
    if constexpr (f == Function::Atan) return std::atan(x);
    if constexpr (f == Function::Sinh) return std::sinh(x);
    if constexpr (f == Function::Cosh) return std::cosh(x);
    if constexpr (f == Function::Log1p) return std::log1p(x);
    if constexpr (f == Function::Expm1) return std::expm1(x);
    if constexpr (f == Function::Log2) return std::log2(x);
    if constexpr (f == Function::Log10) return std::log10(x);
    if constexpr (f == Function::Exp2) return std::exp2(x);
    if constexpr (f == Function::Erf) return std::erf(x);
    if constexpr (f == Function::Erfc) return std::erfc(x);
    if constexpr (f == Function::Floor) return std::floor(x);
    if constexpr (f == Function::Ceil) return std::ceil(x);
    if constexpr (f == Function::Round) return std::rint(x);
    if constexpr (f == Function::Trunc) return std::trunc(x);
  }
};

// Calls body with the functor of the function, so that a loop is compiled once per function and
// dtype.
template <class Body>
void with_function(Function f, Body&& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (void)((static_cast<int>(f) == i && (body(Elementary<static_cast<Function>(i)>{}), true)) || ...);
  }
  (std::make_integer_sequence<int, kFunctions>{});
}

// Selects the function at run time.
template <class C, int... i>
BRIGADE_HOST_DEVICE C any_function(Function f, C x, std::integer_sequence<int, i...>) {
  C y = x;
  (void)((static_cast<int>(f) == i && (y = Elementary<static_cast<Function>(i)>{}(x), true)) || ...);
  return y;
}

}  // namespace brigade::kernels
