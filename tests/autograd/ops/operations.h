// Names of operations: in the graph of a tensor, and in the sources of autograd/ops.
#pragma once

#include <brigade/core/tensor.h>

#include <set>
#include <string>

namespace brigade::test {

// Adds the names of all nodes in the graph of `tensor`.
void collect_operations(const Tensor& tensor, std::set<std::string>& names);

// The same for the graphs of the gradients of `result` w.r.t. the `inputs` that require grad, recorded with
// create_graph: these contain operations that only derivatives use.
void collect_operations_of_gradients(const Tensor& result, std::span<const Tensor> inputs,
                                     std::set<std::string>& names);

// All node names in autograd/ops/*.cpp. Throws ValueError when the sources are no longer at their build-time path.
std::set<std::string> differentiable_operations();

}  // namespace brigade::test
