// The tensors that a function takes: one, several in braces, a vector, an array or a span.
#pragma once

#include <brigade/core/tensor.h>

#include <initializer_list>
#include <span>

namespace brigade {

// Only for parameters: it owns nothing, and what it refers to may be gone after the call.
class TensorList : public std::span<const Tensor> {
 public:
  using std::span<const Tensor>::span;
  TensorList(std::span<const Tensor> tensors) : span(tensors) {}                                // NOLINT
  TensorList(const Tensor& tensor) : span(&tensor, 1) {}                                        // NOLINT
  TensorList(std::initializer_list<Tensor> tensors) : span(tensors.begin(), tensors.size()) {}  // NOLINT
};

}  // namespace brigade
