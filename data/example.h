// Example: one input with its target, or a batch of them.
#pragma once

#include <brigade/core/tensor.h>

#include <vector>

namespace brigade::data {

// `target` is undefined where a dataset has none.
struct Example {
  Tensor data;
  Tensor target;
};

// Stacks along a new first dimension: n tensors [..] of one shape and dtype make one [n, ..], on
// their device. No history is recorded. Throws ShapeError, DTypeError or DeviceError that names the
// first that differs; ValueError for an empty list, an undefined tensor, and one that requires grad.
Tensor default_collate(const std::vector<Tensor>& examples);
// The same of `data` and of `target`; all have a target or none.
Example default_collate(const std::vector<Example>& examples);

}  // namespace brigade::data
