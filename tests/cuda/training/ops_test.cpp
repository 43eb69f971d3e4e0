// Every differentiable operation, forward and backward, in every floating dtype, on the device, compared with the CPU:
// uses the table of gradcheck. A row that fails to run on the device, or an operation that no row runs there, is
// reported by name.
#include "agreement.h"

#include <near.h>

#include <brigade/autograd/functional.h>
#include <brigade/autograd/gradcheck.h>

#include <autograd/ops/cases.h>
#include <autograd/ops/operations.h>

#include <cstdio>
#include <exception>
#include <map>
#include <set>

namespace brigade::test::ops_test {
namespace {

struct Outcome {
  Tensor result;
  std::vector<Tensor> gradients;
  std::set<std::string> operations;
};

Outcome run(const Case& row, DType dtype, Device device, Layout layout) {
  Inputs inputs;
  for (size_t i = 0; i < row.inputs.size(); ++i)
    inputs.push_back(
        leaf_like(row.inputs[i], dtype, device, i < row.options.contiguous_from ? layout : Layout::Contiguous));
  Outcome outcome;
  outcome.result = row.function(inputs);
  collect_operations(outcome.result, outcome.operations);
  collect_operations_of_gradients(outcome.result, inputs, outcome.operations);
  RandomGenerator generator(7);
  const Tensor cotangent = rand(outcome.result.sizes(), {kFloat64}, &generator) * 2.0 - 1.0;
  outcome.result.backward({.gradient = leaf_like(cotangent, outcome.result.dtype(), outcome.result.device(), layout)});
  for (const Tensor& input : inputs)
    outcome.gradients.push_back(input.grad());
  return outcome;
}

// The largest disagreement of the result and all gradients; gradients must be on the device of their inputs.
double compare(const Outcome& there, const Outcome& here, DType dtype, double roundings) {
  double worst = disagreement(there.result, here.result, dtype, roundings);
  for (size_t i = 0; i < here.gradients.size(); ++i) {
    worst = worse(worst, disagreement(there.gradients[i], here.gradients[i], dtype, roundings));
    if (there.gradients[i].defined() && there.gradients[i].device() != kDevice) worst = INFINITY;
  }
  return worst;
}

}  // namespace

TEST_CASE("every differentiable operation gives on the device what it gives on the CPU, in every floating dtype") {
  const std::vector<Case> rows = cases();
  std::map<DType, double> worst;
  std::map<DType, std::set<std::string>> ran;
  int compared = 0;
  for (const Case& row : rows) {
    for (const DType dtype : kFloatingDTypes) {
      for (const Layout layout : kLayouts) {
        if (layout == Layout::Strided && row.options.contiguous_from == 0) continue;
        const std::string which = row.name + (layout == Layout::Strided ? ", strided, in " : " in ") + name(dtype);
        const Outcome here = run(row, dtype, Device(), layout);
        Outcome there;
        try {
          there = run(row, dtype, kDevice, layout);
        } catch (const std::exception& error) {
          FAIL_CHECK(which, " does not run on the device: ", std::string(error.what()));
          continue;
        }
        const double off = compare(there, here, dtype, row.options.roundings);
        CHECK_MESSAGE(off <= 1, which << " is off by " << off << " bounds");
        worst[dtype] = worse(worst[dtype], off);
        ran[dtype].insert(there.operations.begin(), there.operations.end());
        ++compared;
      }
    }
  }
  const std::set<std::string> operations = differentiable_operations();
  CHECK(operations.size() > 40);
  for (const DType dtype : kFloatingDTypes) {
    for (const std::string& operation : operations) {
      CHECK_MESSAGE(ran[dtype].contains(operation),
                    "operation '" << operation << "' did not run on the device in " << std::string(name(dtype)));
    }
  }
  std::printf("%zu operations in %zu rows, %d comparisons; largest difference relative to the bound:",
              operations.size(), rows.size(), compared);
  for (const auto& [dtype, off] : worst)
    std::printf(" %s %.2f", name(dtype), off);
  std::printf("\n");
}

TEST_CASE("gradients on the device agree with central differences there") {
  const auto function = [](const Inputs& i) { return softmax(matmul(i[0].t(), i[1]), 1) * i[2]; };
  const Inputs inputs{leaf_like(input({4, 3}, 1), kFloat64, kDevice),
                      leaf_like(input({4, 2}, 2), kFloat64, kDevice, Layout::Strided),
                      leaf_like(input({3, 2}, 3), kFloat64, kDevice).detach()};
  const autograd::GradcheckResult result = autograd::gradcheck(function, inputs);
  CHECK_MESSAGE(result.ok, result.report);
  const autograd::GradcheckResult wrong = autograd::gradcheck(
      [&](const Inputs& i) {
        return function({i[0], i[1].detach(), i[2]});
      },
      inputs);
  CHECK_FALSE(wrong.ok);
}

}  // namespace brigade::test::ops_test
