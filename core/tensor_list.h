// Tensors that a function takes: one, several in braces, a vector, an array or a span.
#pragma once

#include <brigade/core/tensor.h>

#include <initializer_list>
#include <span>

namespace brigade {

// Only as a parameter: it holds nothing, and what it stands for may be gone when the call is over.
class TensorList : public std::span<const Tensor> {
 public:
  using std::span<const Tensor>::span;
  TensorList(std::span<const Tensor> tensors) : span(tensors) {}                                // NOLINT
  TensorList(const Tensor& tensor) : span(&tensor, 1) {}                                        // NOLINT
  TensorList(std::initializer_list<Tensor> tensors) : span(tensors.begin(), tensors.size()) {}  // NOLINT
};

}  // namespace brigade
