// Checks every differentiable operation, and its second derivatives, against central differences in float64. One test
// case fails when an operation of autograd/ops is not in the table (cases/).
#include "cases.h"
#include "operations.h"

#include <brigade/autograd/function.h>
#include <brigade/autograd/functional.h>
#include <brigade/autograd/gradcheck.h>

#include <doctest/doctest.h>

namespace brigade::test::gradcheck_test {

TEST_CASE("the gradient of every operation agrees with central differences") {
  for (const Case& each : cases()) {
    if (!each.options.central_differences) continue;
    CAPTURE(each.name);
    const autograd::GradcheckResult result = autograd::gradcheck(each.function, each.inputs);
    CHECK_MESSAGE(result.ok, each.name << ": " << result.report);
  }
}

TEST_CASE("the gradient of a transposed input agrees with central differences") {
  const Tensor base = input({4, 3}, 5);
  const autograd::GradcheckResult result = autograd::gradcheck(
      [](const Inputs& i) {
        return softmax(matmul(i[0].t(), i[0]), 1) + sum(i[0].t(), {1}, true).expand({3, 3});
      },
      {base});
  CHECK_MESSAGE(result.ok, result.report);
}

TEST_CASE("gradcheck finds a wrong gradient") {
  const Tensor x = input({3}, 1);
  // detach() hides half of the derivative of x * x.
  const autograd::GradcheckResult result =
      autograd::gradcheck([](const Inputs& i) { return i[0] * i[0].detach(); }, {x});
  CHECK_FALSE(result.ok);
  CHECK(result.worst > 0.1);
}

namespace {

// Returns a NaN in the first element of the gradient and the right derivative in the rest.
struct NanFirst : autograd::Function<NanFirst> {
  static Tensor forward(autograd::AutogradContext&, const Tensor& x) { return x * 2.0; }
  static Inputs backward(autograd::AutogradContext&, const Inputs& grads) {
    Tensor slope = grads[0] * 2.0;
    slope.slice(0, 0, 1).fill_(std::nan(""));
    return {slope};
  }
};

}  // namespace

TEST_CASE("gradcheck finds a NaN, whatever comes after it") {
  const autograd::GradcheckResult result =
      autograd::gradcheck([](const Inputs& i) { return NanFirst::apply(i[0]); }, {input({3}, 1)});
  CHECK_FALSE(result.ok);
  CHECK(result.element == 0);
}

TEST_CASE("no differentiable operation is missing from the table") {
  std::set<std::string> covered;
  for (const Case& each : cases()) {
    const Tensor result = each.function(each.inputs);
    collect_operations(result, covered);
    collect_operations_of_gradients(result, each.inputs, covered);
  }
  const std::set<std::string> operations = differentiable_operations();
  CHECK(operations.size() > 40);
  for (const std::string& operation : operations)
    CHECK_MESSAGE(covered.contains(operation), "operation '" << operation << "' has no row in cases/");
}

TEST_CASE("the second derivative of every operation agrees with central differences") {
  for (const Case& each : cases()) {
    if (!each.options.central_differences) continue;
    CAPTURE(each.name);
    const autograd::GradcheckResult result = autograd::gradgradcheck(each.function, each.inputs);
    CHECK_MESSAGE(result.ok, each.name << ": " << result.report);
  }
}

namespace {

// Its backward takes a different path when it is recorded, and gives a different result.
struct TwoWays : autograd::Function<TwoWays> {
  static Tensor forward(autograd::AutogradContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x * x;
  }
  static Inputs backward(autograd::AutogradContext& ctx, const Inputs& grads) {
    const Tensor x = ctx.get_saved_variables()[0];
    return {grads[0] * x * (autograd::GradMode::is_enabled() ? 2.5 : 2.0)};
  }
};

}  // namespace

TEST_CASE("gradgradcheck finds gradients that differ with create_graph, though their derivative is right") {
  const autograd::GradcheckResult result =
      autograd::gradgradcheck([](const Inputs& i) { return TwoWays::apply(i[0]); }, {input({3}, 1)});
  CHECK_FALSE(result.ok);
  CHECK(result.report.find("without create_graph") != std::string::npos);
}

}  // namespace brigade::test::gradcheck_test
