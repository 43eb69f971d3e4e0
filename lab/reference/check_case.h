// One case: an operation run with the inputs of a fixture, beside what PyTorch gave.
//
// Compared are the results; the gradients of <results, grad_output> by the fast backward, and once
// more by the backward that records itself (create_graph); and the double gradients: those of
// <gradients, grad_weight> with respect to the inputs and to grad_output. A gradient that does not
// exist counts as zeros, as PyTorch's materialize_grads does it.
#pragma once

#include <brigade/core/compare.h>
#include <brigade/core/device.h>
#include <brigade/lab/reference/table.h>

#include <functional>
#include <string>
#include <vector>

namespace brigade::lab::reference {

// The tensor "input.0", "grad_output.0", "output.0", "grad.0", "grad_weight.0", "double.0",
// "double.grad_output.0" of a case; undefined when there is none.
using Fixture = std::function<Tensor(const std::string& name)>;

struct CaseResult {
  check::Report report;
  std::string error;  // why the case could not be run; "" when it could
  bool passed() const noexcept { return error.empty() && report.passed(); }
  // The row that is the largest part of its bound; null when there is none.
  const check::Comparison* worst() const;
};

// How much closer the operation's own bound is to breaking: max_abs / bound.
double part_of_bound(const check::Comparison& row);

struct CheckOptions {
  Device device = {};
  // A part of the scale of each tensor; 0: check::default_bound of the dtype and of the largest
  // input's number of elements, times what the row widens it by, twice that for gradients by
  // create_graph, four times for double gradients.
  double bound = 0;
  // Compare only what the fixture has: for files of users, who need not give everything. Without a
  // grad_output, gradients start from 1 where there is one result with one element.
  bool partial = false;
  // Gets the results, and the gradients that have a history.
  std::function<void(const Tensor&)> seen = {};
};
CaseResult check_case(const Case& which, const Fixture& fixture, const CheckOptions& options = {});

}  // namespace brigade::lab::reference
