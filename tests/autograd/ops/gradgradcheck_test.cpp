// Second derivatives: the gradients computed with create_graph, differentiated again and checked against central
// differences.
#include "cases.h"

#include <brigade/autograd/function.h>
#include <brigade/autograd/functional.h>
#include <brigade/autograd/gradcheck.h>

#include <doctest/doctest.h>

namespace brigade::test::gradgradcheck_test {

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

}  // namespace brigade::test::gradgradcheck_test
