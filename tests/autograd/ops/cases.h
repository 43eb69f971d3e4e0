// Every differentiable operation with suitable inputs, for gradcheck (gradcheck_test.cpp) and for comparisons between
// devices and dtypes (tests/cuda/training/ops_test.cpp).
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace brigade::test {

using Inputs = std::vector<Tensor>;

struct CaseOptions {
  // False for a cast or a copy to the CPU: no smooth derivative in float64, or the same derivative as another row.
  bool central_differences = true;
  // Roundings by which two correct computations of a result or gradient may differ: more than 1 where intermediate
  // values grow or many terms are summed.
  double roundings = 1;
  // Index of the first input that must be contiguous, as must all inputs after it; and the reason.
  size_t contiguous_from = SIZE_MAX;
  std::string why_contiguous = {};
};

struct Case {
  // The operation's name in the graph, and what is special about this row.
  std::string name;
  // Depends on the inputs only, so they may have another dtype, device, or strides. Deterministic; returns one tensor.
  std::function<Tensor(const Inputs&)> function;
  // Contiguous, on the CPU; floating-point inputs are float64. Inputs that require grad are differentiated.
  Inputs inputs;
  CaseOptions options = {};
};

// All rows, grouped by family. Builds a new table on each call, since its tensors accumulate gradients.
std::vector<Case> cases();

// The rows of a family. cases/<family>_cases.cpp registers them from a static object, so there is no central list.
using CaseTable = std::vector<Case> (*)();
struct AddCases {
  explicit AddCases(CaseTable table);
};

// Values away from 0, where abs, relu, sqrt etc. have kinks or poles: magnitudes in 0.3 .. 1.5, of either sign unless
// `positive`. A float64 leaf that requires grad.
Tensor input(const Shape& sizes, uint64_t seed = 1, bool positive = false);
// Uniform in 0 .. 1, float64, does not require grad.
Tensor fixed(const Shape& sizes, uint64_t seed);

}  // namespace brigade::test
