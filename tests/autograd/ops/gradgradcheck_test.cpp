// Second derivatives: what backward computes with create_graph, differentiated once more, against central differences.
#include "cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/autograd/gradcheck.h>

#include <doctest/doctest.h>

using namespace brigade;
using namespace brigade::test;

TEST_CASE("the second derivative of every operation agrees with central differences") {
  for (const Case& each : cases()) {
    if (!each.options.central_differences) continue;
    CAPTURE(each.name);
    const autograd::GradcheckResult result = autograd::gradgradcheck(each.function, each.inputs);
    CHECK_MESSAGE(result.ok, each.name << ": " << result.report);
  }
}
