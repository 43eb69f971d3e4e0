// Reductions shared by the CPU and CUDA: the state after some elements (a Value), how an element is added, how two
// states are combined, and how the result is stored.
//
//   using Value = ...;
//   Value nothing() const;                     // of no elements
//   Value add(Value, C element) const;
//   Value join(Value, Value) const;            // of consecutive parts
//   void store(int64_t i, Value) const;        // as result i
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/core/dtype.h>

#include <cmath>
#include <limits>
#include <type_traits>

namespace brigade::kernels {

// The type in which elements of type T are compared and multiplied.
template <class T>
using reduced_type = std::conditional_t<std::is_integral_v<T>, int64_t, compute_type<T>>;

// The product; in int64 for integers and bool.
template <class T>
struct ProductOf {
  using Value = reduced_type<T>;
  std::conditional_t<std::is_integral_v<T>, int64_t, T>* out;

  BRIGADE_HOST_DEVICE Value nothing() const { return Value(1); }
  BRIGADE_HOST_DEVICE Value add(Value product, Value x) const { return product * x; }
  BRIGADE_HOST_DEVICE Value join(Value a, Value b) const { return a * b; }
  BRIGADE_HOST_DEVICE void store(int64_t i, Value product) const {
    out[i] = static_cast<std::remove_reference_t<decltype(*out)>>(product);
  }
};

// The largest or the smallest element. NaNs propagate, as in PyTorch.
template <bool largest, class T>
struct ExtremeOf {
  using Value = reduced_type<T>;
  T* out;

  BRIGADE_HOST_DEVICE Value nothing() const {
    if constexpr (std::is_integral_v<Value>) {
      return largest ? std::numeric_limits<Value>::min() : std::numeric_limits<Value>::max();
    } else {
      return largest ? -std::numeric_limits<Value>::infinity() : std::numeric_limits<Value>::infinity();
    }
  }
  BRIGADE_HOST_DEVICE Value add(Value best, Value x) const {
    // Written so that compilers emit one instruction and a blend.
    const Value better = (largest ? x > best : x < best) ? x : best;
    return x != x ? x : better;
  }
  BRIGADE_HOST_DEVICE Value join(Value a, Value b) const { return a != a ? a : add(a, b); }
  BRIGADE_HOST_DEVICE void store(int64_t i, Value best) const { out[i] = static_cast<T>(best); }
};

// The accumulation of a p-norm over absolute values.
enum class NormKind : uint8_t { Zero, One, Two, Any, Largest, Smallest };
NormKind norm_kind(double p);

template <NormKind kind, class T>
struct NormOf {
  using Value = compute_type<T>;
  T* out;
  Value p;

  BRIGADE_HOST_DEVICE Value nothing() const {
    return kind == NormKind::Smallest ? std::numeric_limits<Value>::infinity() : Value(0);
  }
  BRIGADE_HOST_DEVICE Value add(Value norm, Value x) const {
    if constexpr (kind == NormKind::Zero) return norm + (x != Value(0) ? Value(1) : Value(0));
    if constexpr (kind == NormKind::Two) return norm + x * x;
    const Value size = x < Value(0) ? -x : x;
    if constexpr (kind == NormKind::Any) return norm + std::pow(size, p);
    return join(norm, size);
  }
  BRIGADE_HOST_DEVICE Value join(Value a, Value b) const {
    if constexpr (kind == NormKind::Largest) return ExtremeOf<true, Value>{nullptr}.join(a, b);
    if constexpr (kind == NormKind::Smallest) return ExtremeOf<false, Value>{nullptr}.join(a, b);
    return a + b;
  }
  BRIGADE_HOST_DEVICE void store(int64_t i, Value norm) const {
    if constexpr (kind == NormKind::Two) norm = std::sqrt(norm);
    if constexpr (kind == NormKind::Any) norm = std::pow(norm, Value(1) / p);
    out[i] = static_cast<T>(norm);
  }
};

// Count, mean and the sum of squared distances from the mean, combined without cancellation: Chan, Golub and LeVeque,
// "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
template <class C>
struct Moments {
  C count = 0, mean = 0, squares = 0;
};
template <class C>
BRIGADE_HOST_DEVICE Moments<C> join_moments(const Moments<C>& a, const Moments<C>& b) {
  const C count = a.count + b.count;
  if (count == C(0)) return a;
  const C distance = b.mean - a.mean;
  const C share = b.count / count;
  const C mean = std::isfinite(distance) ? a.mean + distance * share : a.mean * (C(1) - share) + b.mean * share;
  return {count, mean, a.squares + b.squares + distance * distance * a.count * share};
}

template <class T>
struct VarianceOf {
  using C = compute_type<T>;
  using Value = Moments<C>;
  T* variance;
  T* mean;
  double correction;
  bool root;

  BRIGADE_HOST_DEVICE Value nothing() const { return {}; }
  BRIGADE_HOST_DEVICE Value add(const Value& seen, C x) const { return join(seen, {C(1), x, C(0)}); }
  BRIGADE_HOST_DEVICE Value join(const Value& a, const Value& b) const { return join_moments(a, b); }
  // Too few elements give NaN or infinity (0 / 0 or x / 0).
  template <class Count>
  BRIGADE_HOST_DEVICE void store(int64_t i, const Moments<Count>& seen) const {
    const double degrees = static_cast<double>(seen.count) - correction;
    const double result = static_cast<double>(seen.squares) / (degrees > 0 ? degrees : 0.0);
    variance[i] = static_cast<T>(static_cast<C>(root ? std::sqrt(result) : result));
    const Count center = seen.count == Count(0) ? std::numeric_limits<Count>::quiet_NaN() : seen.mean;
    mean[i] = static_cast<T>(static_cast<C>(center));
  }
};

}  // namespace brigade::kernels
