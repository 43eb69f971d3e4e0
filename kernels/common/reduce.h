// Device-independent parts of the reductions and scans: dimensions, memory layout, destination of the result.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/core/tensor.h>
#include <brigade/kernels/reduce.h>

#include <cmath>
#include <limits>
#include <type_traits>

namespace brigade::kernels {

// --- Reductions; their functors are in reducers.h.

// The type of a sum, and its accumulation type.
template <class T>
using sum_type = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
template <class T>
using sum_accumulator = std::conditional_t<std::is_integral_v<T>, int64_t, compute_type<T>>;

// The input and output of a reduction over some dimensions.
struct ReductionPlan {
  // [outer, reduced, inner], dense: `x` itself when the reduced dimensions are adjacent, in its own order or in memory
  // order (a transposed matrix); else a permuted copy with inner = 1.
  Tensor x;
  int64_t outer = 1, reduced = 1, inner = 1;
  Tensor out;  // outer * inner elements, dense
  bool accumulate = false;
  Shape order;  // the permutation of the dimensions; empty if not permuted
};
// Reduction of `x` over `dims` (empty: all) into a new tensor of dtype `out`, not filled. Throws ShapeError for a
// duplicate dimension, IndexError for one out of range.
ReductionPlan prepare_reduction(const Tensor& x, const Shape& dims, bool keepdim, DType out);
// Throws the same, and ShapeError for an `out` that does not fit.
ReductionPlan prepare_sum(const Tensor& x, const ReduceOptions& options);

// For amax and amin. Throws ShapeError for a reduction over no elements.
ReductionPlan prepare_extreme(const Tensor& x, const Shape& dims, bool keepdim, const char* what);
// Throws DTypeError, and ShapeError if the norm over no elements has no value.
ReductionPlan prepare_norm(const Tensor& x, double p, const Shape& dims, bool keepdim);

struct VariancePlan {
  ReductionPlan slices;  // out: the variances
  Tensor mean;           // not filled
};
VariancePlan prepare_variance(const Tensor& x, const Shape& dims, bool keepdim);

struct VarianceBackwardPlan {
  ReductionPlan slices;  // out: undefined
  Tensor factor, mean;   // dense: [outer, inner]
  Tensor slope;          // dense: [outer, reduced, inner], not filled
  Tensor result;         // `slope` in the shape of x
};
VarianceBackwardPlan prepare_variance_backward(const Tensor& factor, const Tensor& x, const Tensor& mean,
                                               const Shape& dims);

// Extremes over one dimension.
struct ExtremesPlan {
  Extremes result;  // not filled
  Tensor x;         // dense: [.., length, inner]
  int64_t length = 1, inner = 1;
};
// Throws ShapeError when the dimension is empty.
ExtremesPlan prepare_extremes(const Tensor& x, int dim, bool keepdim);

struct ExtremesBackwardPlan {
  Tensor grad, indices;  // dense: [.., inner]
  Tensor result;         // [.., length, inner], not filled
  int64_t length = 1, inner = 1;
};
// Throws ShapeError unless there are a gradient and an index for each slice along `dim`.
ExtremesBackwardPlan prepare_extremes_backward(const Tensor& grad, const Tensor& indices, const Shape& x_sizes,
                                               int dim);

// --- Scans: slices along a dimension, and how states are combined.

struct ScanPlan {
  Tensor x, factor;  // dense [outer, length, inner]; factor: a of a recurrence, undefined elsewhere
  Tensor result;     // not filled
  int64_t outer = 1, length = 1, inner = 1;
};
// Throw DTypeError, ShapeError, DeviceError.
ScanPlan prepare_scan(const Tensor& x, int dim, ScanOp op);
ScanPlan prepare_linear_recurrence(const Tensor& b, const Tensor& a, int dim);

// A state represents a range of elements; `join` combines two consecutive ranges. C: the compute type.
template <class C>
struct SumScan {
  using State = C;
  BRIGADE_HOST_DEVICE static State nothing() { return C(0); }
  BRIGADE_HOST_DEVICE static State join(State left, State right) { return static_cast<C>(left + right); }
  BRIGADE_HOST_DEVICE static C value(State state) { return state; }
};
template <class C>
struct ProductScan {
  using State = C;
  BRIGADE_HOST_DEVICE static State nothing() { return C(1); }
  BRIGADE_HOST_DEVICE static State join(State left, State right) { return static_cast<C>(left * right); }
  BRIGADE_HOST_DEVICE static C value(State state) { return state; }
};
template <class C>
struct LogSumExpScan {
  using State = C;
  BRIGADE_HOST_DEVICE static State nothing() { return -std::numeric_limits<C>::infinity(); }
  BRIGADE_HOST_DEVICE static State join(State left, State right) {
    const bool left_is_larger = left > right || left != left;
    const C large = left_is_larger ? left : right;
    const C small = left_is_larger ? right : left;
    // Equal infinities: their difference would be a NaN.
    return large == small ? large + static_cast<C>(0.6931471805599453) : large + std::log1p(std::exp(small - large));
  }
  BRIGADE_HOST_DEVICE static C value(State state) { return state; }
};
// y = slope * (what came before) + y
template <class C>
struct RecurrenceScan {
  struct State {
    C slope, y;
  };
  BRIGADE_HOST_DEVICE static State nothing() { return {C(1), C(0)}; }
  BRIGADE_HOST_DEVICE static State join(State left, State right) {
    return {left.slope * right.slope, right.slope * left.y + right.y};
  }
  BRIGADE_HOST_DEVICE static C value(State state) { return state.y; }
};

}  // namespace brigade::kernels
