// gradcheck: compares the gradients of backward with central differences.
#pragma once

#include <brigade/core/tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace brigade::autograd {

struct GradcheckOptions {
  double step = 1e-6;       // half the distance of the two points of a difference
  double tolerance = 1e-6;  // of the relative error
  uint64_t seed = 0;        // of the random weights of the result's elements
};

struct GradcheckResult {
  bool ok = false;
  double worst = 0;  // largest |backward - difference| / max(1, |backward|, |difference|)
  size_t input = 0;  // the input and the element with the largest error
  int64_t element = 0;
  double from_backward = 0;
  double from_difference = 0;  // or the gradient without create_graph
  std::string report;          // one line
};

// `function` takes the inputs and returns one tensor; the check is on a random weighted sum of its
// elements. Inputs are float64, on any device; those that require grad are checked, element by
// element. The function must be smooth at the inputs and give the same result each time. Throws
// DTypeError when an input that requires grad is not float64.
GradcheckResult gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});

// The same for second derivatives: checks that backward computes the same gradients with create_graph as without, and
// compares the derivatives of these gradients, with respect to the inputs and to the gradient of the result, with
// central differences. In the report, an input index past the last input means the gradient of the result.
GradcheckResult gradgradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                              const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});

}  // namespace brigade::autograd
