// The names of the operations: behind a tensor, and in the sources of autograd/ops.
#pragma once

#include <brigade/core/tensor.h>

#include <set>
#include <string>

namespace brigade::test {

// Adds the names of all nodes behind `tensor`.
void collect_operations(const Tensor& tensor, std::set<std::string>& names);

// The same, for the gradients of `result` by those of `inputs` that require grad, recorded by create_graph: operations
// that only derivatives consist of.
void collect_operations_of_gradients(const Tensor& result, std::span<const Tensor> inputs,
                                     std::set<std::string>& names);

// All names that autograd/ops/*.cpp gives to nodes. Throws ValueError when the sources are not where they were
// compiled.
std::set<std::string> differentiable_operations();

}  // namespace brigade::test
