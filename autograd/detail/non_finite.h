// Which operation a number that is not finite came from: asked only when one has turned up.
#pragma once

#include <brigade/autograd/node.h>

#include <span>

namespace brigade::autograd::detail {

// Operations whose derivative has no bound: a finite gradient can leave them as an infinity.
bool has_unbounded_derivative(const char* op) noexcept;
// Of what lies in host memory and is contiguous; false for anything else.
bool holds_non_finite(const Tensor& tensor);

struct FirstNonFinite {
  const char* op = nullptr;  // null: nothing was found
  SourceLocation where;
  bool is_result = false;  // its result; otherwise what it takes, or its result
  DType dtype = kFloat32;  // of what is not finite: a half type may have left its range
};
// The earliest operation behind the roots that a NaN was kept of, or else an infinity. Reads every
// tensor that the graph has saved.
FirstNonFinite first_non_finite(std::span<const Tensor> roots);

}  // namespace brigade::autograd::detail
