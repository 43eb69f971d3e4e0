// Finds the operation that a non-finite number came from, once one has been seen.
#pragma once

#include <brigade/autograd/node.h>

#include <span>

namespace brigade::autograd::detail {

// Operations whose derivative has no bound: a finite gradient can leave them as an infinity.
bool has_unbounded_derivative(const char* op) noexcept;
// For a contiguous tensor in host memory; false for any other.
bool holds_non_finite(const Tensor& tensor);

struct FirstNonFinite {
  const char* op = nullptr;  // null: nothing was found
  SourceLocation where;
  bool is_result = false;  // its result is not finite; otherwise one of its inputs, or its result
  DType dtype = kFloat32;  // of the non-finite tensor: a half type may have overflowed
};
// The earliest operation behind the roots for which a NaN was saved, or else an infinity. Reads every tensor that the
// graph has saved.
FirstNonFinite first_non_finite(std::span<const Tensor> roots);

}  // namespace brigade::autograd::detail
