// Reverse-mode differentiation: from a root to the gradients of the leaves.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/core/tensor_list.h>

#include <vector>

namespace brigade {

struct BackwardOptions {
  // The gradient of the root, in any dtype; it is cast to the root's. May be undefined for a root with one element
  // (then it is 1).
  Tensor gradient = {};
  // Keep the tensors that forward saved, for another backward through the same graph.
  bool retain_graph = false;
  // Record the operations of backward, so that the gradients can be differentiated again; keeps the graph as well.
  bool create_graph = false;
};

namespace autograd {

// How a backward uses the graph, see BackwardOptions.
struct GraphUse {
  bool retain_graph = false;
  bool create_graph = false;
};

// Adds the gradient of the sum of the roots (each weighted by its entry in `gradients`, which may
// be empty) to the .grad of every leaf they depend on. Throws AutogradError, with PyTorch's
// phrases:
//   "element 0 of tensors does not require grad and does not have a grad_fn"
//   "grad can be implicitly created only for scalar outputs"
//   "Mismatch in shape: grad_output[0] has a shape of ..."
//   "Trying to backward through the graph a second time ..." (and where the operation was recorded,
//     and which backward freed it)
//   "one of the variables needed for gradient computation has been modified by an inplace operation:
//     ..."
// Backward over one graph from two threads at once is an error.
//
// With create_graph the .grad of a leaf has a history, which keeps the graph alive until the
// gradient is cleared (grad() is the better choice for second derivatives). A gradient that lives
// in a bucket of DDP has none: its values are reduced.
void backward(TensorList roots, TensorList gradients, const GraphUse& use = {},
              SourceLocation where = SourceLocation::current());

struct GradOptions {
  // The gradients of the outputs to start from: one per output, or none.
  std::vector<Tensor> grad_outputs = {};
  bool retain_graph = false;
  // An input that the outputs do not depend on gives an undefined tensor instead of an error.
  bool allow_unused = false;
  // The gradients get a history, so that they can be differentiated again; keeps the graph as well.
  bool create_graph = false;
  // Zeros in place of undefined gradients; implies allow_unused.
  bool materialize_grads = false;
};
// The gradients of the sum of `outputs` with respect to `inputs` (leaves or results), like torch.autograd.grad: they
// are returned, and no .grad changes. Listeners (a DDP wrapper) are not notified. Hooks of the inputs run. Throws
// AutogradError like backward(), and "One of the differentiated Tensors appears to not have been used in the graph",
// with its position.
std::vector<Tensor> grad(TensorList outputs, TensorList inputs, const GradOptions& options = {},
                         SourceLocation where = SourceLocation::current());

// A backward that retained its graph.
struct RetainedGraph {
  SourceLocation where;
  size_t nodes;
  size_t bytes;     // of saved results kept for another backward (parameters not counted)
  bool used_again;  // a later backward of this thread used the graph
};
// Returns, each once, the retained graphs of this thread that were used again or are fully freed. Only the latest are
// kept.
std::vector<RetainedGraph> take_retained_graphs();

}  // namespace autograd
}  // namespace brigade
