// What operations share: located errors, casts of operands, slices and reductions.
#pragma once

#include <brigade/autograd/ops/reduce.h>
#include <brigade/core/index_error.h>
#include <brigade/core/tensor.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/loss.h>

namespace brigade::autograd::detail {

// --- Adds the operation and the user's line to errors that shapes, views and kernels throw, immediately or late.

// Rethrows `error` with its type. Prepends "op: " unless the message already names the operation (`op` may be null),
// and appends " (called at file.cpp:12)" unless the message already has the line. Call it in a catch handler.
[[noreturn, gnu::cold]] void rethrow_located(const Error& error, const char* op, SourceLocation where);

template <class F>
decltype(auto) located(const char* op, SourceLocation where, F&& f) {
  const CallSite site(where);
  try {
    return f();
  } catch (const Error& error) {
    rethrow_located(error, op, where);
  }
}

template <class F>
decltype(auto) located(SourceLocation where, F&& f) {
  return located(nullptr, where, std::forward<F>(f));
}

// wrap_dim for an operation. Throws an IndexError that names the operation and the user's line.
int dimension_of(const char* op, int64_t dim, int dims, SourceLocation where);

// --- A recorded cast with its own operation name.

// x in another dtype, like Tensor::to; `op` names the cast on the tape and in the graph. Returns x itself if it already
// has the dtype.
Tensor cast(const char* op, const Tensor& x, DType dtype, SourceLocation where);

// Whether autocast may cast x: any floating dtype except float64.
inline bool may_be_cast(const Tensor& x) {
  return x.defined() && is_floating_point(x.dtype()) && x.dtype() != kFloat64;
}

// --- Indices in the dtype that kernels require.

// Casts int32 to int64; returns anything else unchanged, for the kernel to check.
inline Tensor as_indices(const Tensor& index) {
  return index.defined() && index.dtype() == kInt32 ? kernels::cast(index, kInt64) : index;
}

// --- Half types are differentiated in float32: the intermediate steps of a formula could overflow, or lose the result
// to rounding, although the gradient itself is representable.

// Casts half types to float32; returns any other tensor, or an undefined one, unchanged.
inline Tensor widened(const Tensor& x) { return x.defined() && is_half(x.dtype()) ? x.to(kFloat32, {}) : x; }
// Casts x to `dtype`; returns x itself if it has the dtype.
inline Tensor in_dtype(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : x.to(dtype, {}); }

// Applies the kernel of a function of real numbers, with integers and bools cast to float32. These have no history that
// the cast would have to keep.
template <class F>
Tensor of_reals(const Tensor& x, F&& kernel) {
  return is_floating_point(x.dtype()) ? kernel(x) : kernel(kernels::cast(x, kFloat32));
}

// --- Slices of a tensor over the dimensions that a reduction removes: shapes and conversions.

// `sizes` with the dimensions `dims` set to 1 (empty: all; negative ones count from the end). Throws IndexError.
Shape kept_sizes(const Shape& sizes, const Shape& dims);
// How many elements of a tensor of these sizes are reduced to one element of the result.
int64_t reduced_count(const Shape& sizes, const Shape& dims);

// x as [.., n], with the elements of each slice along the last dimension; differentiable. from_slices is the inverse,
// for a tensor of that shape.
Tensor to_slices(const Tensor& x, const Shape& dims);
Tensor from_slices(const Tensor& slices, const Shape& sizes, const Shape& dims);

// The diagonal of the last two dimensions, [.., n, m] -> [.., min(n, m)]; differentiable.
Tensor diagonal(const Tensor& x);

// --- The reduction of composite losses.

inline Tensor reduced(const Tensor& losses, Reduction reduction, SourceLocation where) {
  if (reduction == Reduction::None) return losses;
  return reduction == Reduction::Mean ? mean(losses, {}, false, where) : sum(losses, {}, false, where);
}

}  // namespace brigade::autograd::detail
