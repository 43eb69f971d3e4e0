// Every differentiable operation with inputs that suit it: for central differences (gradcheck_test.cpp) and for devices
// and dtypes beside each other (tests/cuda/training/ops_test.cpp).
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace brigade::test {

using Inputs = std::vector<Tensor>;

struct CaseOptions {
  // A cast or a copy to the CPU has no smooth derivative in float64, or none that differs from another row's.
  bool central_differences = true;
  // Roundings between two computations of a result, or of a gradient, that are both right: more than 1 where values
  // grow on the way or many are added up.
  double roundings = 1;
  // The first of the inputs that have to be contiguous, with those after it, and why.
  size_t contiguous_from = SIZE_MAX;
  std::string why_contiguous = {};
};

struct Case {
  // The operation's name on the graph, and what is special about this row.
  std::string name;
  // Of the inputs alone, so that these may have another dtype, another device and any strides; the same result each
  // time. One tensor.
  std::function<Tensor(const Inputs&)> function;
  // On the CPU, contiguous; float64 where floating. Those that require grad are differentiated.
  Inputs inputs;
  CaseOptions options = {};
};

// All rows, those of one family after those of another. A new table each time: its tensors carry gradients.
std::vector<Case> cases();

// A family's rows: cases/<family>_cases.cpp adds them from a static object, so no list is edited anywhere.
using CaseTable = std::vector<Case> (*)();
struct AddCases {
  explicit AddCases(CaseTable table);
};

// Values away from 0, where abs, relu, sqrt and the like have kinks or poles: 0.3 .. 1.5, with either sign unless
// `positive`. A float64 leaf that requires grad.
Tensor input(const Shape& sizes, uint64_t seed = 1, bool positive = false);
// Uniform in 0 .. 1, float64, not differentiated.
Tensor fixed(const Shape& sizes, uint64_t seed);

}  // namespace brigade::test
