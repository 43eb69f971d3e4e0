// Example: one input with its target, or a batch of them.
#pragma once

#include <brigade/core/tensor.h>

#include <vector>

namespace brigade::data {

// `target` is undefined if the dataset has none.
struct Example {
  Tensor data;
  Tensor target;
};

// Stacks along a new first dimension: n tensors [..] of one shape and dtype make one [n, ..], on their device. No
// history is recorded. Throws a ShapeError, DTypeError or DeviceError that names the first tensor that differs;
// ValueError for an empty list, an undefined tensor, and one that requires grad.
Tensor default_collate(const std::vector<Tensor>& examples);
// The same for `data` and for `target`; either all examples have a target or none has.
Example default_collate(const std::vector<Example>& examples);

}  // namespace brigade::data
