// Checks one case: an operation run with the inputs of a fixture, compared with PyTorch's results.
//
// Compares the results; the gradients of <results, grad_output>, by the fast backward and by the backward that
// records itself (create_graph); and the double gradients: those of <gradients, grad_weight> with respect to the
// inputs and to grad_output. A gradient that does not exist counts as zeros, as with PyTorch's materialize_grads.
#pragma once

#include <brigade/core/compare.h>
#include <brigade/core/device.h>
#include <brigade/lab/reference/table.h>

#include <functional>
#include <string>

namespace brigade::lab::reference {

// The tensor "input.0", "grad_output.0", "output.0", "grad.0", "grad_weight.0", "double.0",
// "double.grad_output.0" of a case; undefined when there is none.
using Fixture = std::function<Tensor(const std::string& name)>;

struct CaseResult {
  check::Report report;
  std::string error;  // why the case could not run; "" if it ran
  bool passed() const noexcept { return error.empty() && report.passed(); }
  // The row with the largest part_of_bound(); null when there is no row.
  const check::Comparison* worst() const;
};

// The fraction of the bound that the error takes: max_abs / bound.
double part_of_bound(const check::Comparison& row);

struct CheckOptions {
  Device device = {};
  // Relative to the scale of each tensor. 0: check::default_bound of the dtype and of the largest input's number of
  // elements, times the row's factor; twice that for gradients by create_graph, four times for double gradients.
  double bound = 0;
  // Compare only the tensors that the fixture has: for user files, which may be incomplete. Without a grad_output,
  // gradients start from 1 if there is one result with one element.
  bool partial = false;
  // Called with the results and with the gradients that have a history.
  std::function<void(const Tensor&)> seen = {};
};
CaseResult check_case(const Case& which, const Fixture& fixture, const CheckOptions& options = {});

}  // namespace brigade::lab::reference
