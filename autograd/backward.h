// Reverse mode: from a root to the gradients of the leaves.
#pragma once

#include <brigade/core/tensor.h>

#include <span>

namespace brigade {

struct BackwardOptions {
  // The gradient of the root; may be undefined for a root with one element (1 is taken).
  Tensor gradient = {};
  // Keep what forward saved, for another backward through the same graph.
  bool retain_graph = false;
};

namespace autograd {

// Adds the gradient of the sum of the roots (each weighted by its entry in `gradients`, which may be empty) to the
// .grad of every leaf they depend on. Throws AutogradError, with PyTorch's phrases:
//   "element 0 of tensors does not require grad and does not have a grad_fn"
//   "grad can be implicitly created only for scalar outputs"
//   "Mismatch in shape: grad_output[0] has a shape of ..."
//   "Trying to backward through the graph a second time ..." (and where the operation was recorded, and which backward
//   freed it) "one of the variables needed for gradient computation has been modified by an inplace operation: ..."
// Backward over one graph from two threads at once is an error.
void backward(std::span<const Tensor> roots, std::span<const Tensor> gradients, bool retain_graph,
              SourceLocation where = SourceLocation::current());

}  // namespace autograd
}  // namespace brigade
