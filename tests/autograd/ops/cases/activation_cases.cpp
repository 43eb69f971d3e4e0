#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::activation_cases {

namespace {

const AddCases add_activation_cases([] {
  return std::vector<Case>{
      {"relu", [](const Inputs& i) { return relu(i[0]); }, {input({7})}},
      {"leaky_relu", [](const Inputs& i) { return leaky_relu(i[0], 0.2); }, {input({7})}},
      {"gelu", [](const Inputs& i) { return gelu(i[0]); }, {input({7})}},
      {"gelu tanh", [](const Inputs& i) { return gelu(i[0], GeluApproximation::Tanh); }, {input({7})}},
      {"tanh", [](const Inputs& i) { return brigade::tanh(i[0]); }, {input({7})}},
      {"sigmoid", [](const Inputs& i) { return sigmoid(i[0]); }, {input({7})}},
      {"silu", [](const Inputs& i) { return silu(i[0]); }, {input({7})}},
  };
});

}  // namespace

}  // namespace brigade::test::activation_cases
