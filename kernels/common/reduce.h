// What the reductions of every device share: which dimensions, how the memory is seen, where the
// result goes.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/reduce.h>

#include <type_traits>

namespace brigade::kernels {

// The dtype of a sum, and the type it is added up in.
template <class T>
using sum_type = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
template <class T>
using sum_accumulator = std::conditional_t<std::is_integral_v<T>, int64_t, compute_type<T>>;

// What a reduction over some dimensions reads and writes.
struct ReductionPlan {
  // [outer, reduced, inner], dense: `x` itself when the reduced dimensions are neighbours, in its own
  // order or in that of its memory (a transposed matrix); else a permuted copy with inner = 1.
  Tensor x;
  int64_t outer = 1, reduced = 1, inner = 1;
  Tensor out;  // outer * inner elements, dense
  bool accumulate = false;
  Shape order;  // of the dimensions, where they are permuted; else empty
};
// Of `x` over `dims` (empty: all) into a new tensor of dtype `out`, not filled. Throws ShapeError
// for a dimension that is named twice, IndexError for one that there is not.
ReductionPlan prepare_reduction(const Tensor& x, const Shape& dims, bool keepdim, DType out);
// Throws the same, and ShapeError for an `out` that does not fit.
ReductionPlan prepare_sum(const Tensor& x, const ReduceOptions& options);

// Of amax and amin. Throws ShapeError where there is nothing to choose from.
ReductionPlan prepare_extreme(const Tensor& x, const Shape& dims, bool keepdim, const char* what);
// Throws DTypeError, and ShapeError where a norm of no elements has no value.
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

}  // namespace brigade::kernels
