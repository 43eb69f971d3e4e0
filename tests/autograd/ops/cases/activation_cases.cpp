// Activations, softmax and dropout, for the checks of derivatives.
#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>
#include <brigade/core/random.h>
#include "../cases.h"

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

const AddCases add_parametric_activation_cases([] {
  return std::vector<Case>{
      {"elu", [](const Inputs& i) { return elu(i[0], 1.3); }, {input({7})}},
      {"selu", [](const Inputs& i) { return selu(i[0]); }, {input({7})}},
      {"celu", [](const Inputs& i) { return celu(i[0], 0.7); }, {input({7})}},
      {"softplus", [](const Inputs& i) { return softplus(i[0]); }, {input({7})}},
      {"softplus beyond its threshold", [](const Inputs& i) { return softplus(i[0], 2, 1.5); }, {input({7})}},
      {"hardtanh", [](const Inputs& i) { return hardtanh(i[0], -0.5, 0.8); }, {input({7})}},
      {"relu6", [](const Inputs& i) { return relu6(i[0] * 5.0); }, {input({11})}},
      {"hardsigmoid", [](const Inputs& i) { return hardsigmoid(i[0] * 4.0); }, {input({11})}},
      {"hardswish", [](const Inputs& i) { return hardswish(i[0] * 4.0); }, {input({11})}},
      {"mish", [](const Inputs& i) { return mish(i[0] * 2.0); }, {input({7})}},
      {"softsign", [](const Inputs& i) { return softsign(i[0]); }, {input({7})}},
      {"logsigmoid", [](const Inputs& i) { return logsigmoid(i[0] * 2.0); }, {input({7})}},
      {"softshrink", [](const Inputs& i) { return softshrink(i[0], 0.8); }, {input({7})}},
      {"hardshrink", [](const Inputs& i) { return hardshrink(i[0], 0.8); }, {input({7})}},
      {"prelu", [](const Inputs& i) { return prelu(i[0], i[1]); }, {input({2, 3, 2}), input({3}, 2)}},
      {"prelu one weight", [](const Inputs& i) { return prelu(i[0], i[1]); }, {input({5}), input({1}, 2)}},
      {"glu", [](const Inputs& i) { return glu(i[0], 1); }, {input({2, 6, 2})}},
  };
});

const AddCases add_softmax_cases([] {
  return std::vector<Case>{
      {"softmax", [](const Inputs& i) { return softmax(i[0], -1); }, {input({2, 5})}},
      {"softmax inner", [](const Inputs& i) { return softmax(i[0], 1); }, {input({2, 3, 2})}},
      {"softmin", [](const Inputs& i) { return softmin(i[0], 1); }, {input({2, 5})}},
      {"log_softmax inner", [](const Inputs& i) { return log_softmax(i[0], 1); }, {input({2, 3, 2})}},
      {"log_softmax of a number", [](const Inputs& i) { return log_softmax(i[0], 0); }, {input({})}},
      {"log_softmax", [](const Inputs& i) { return log_softmax(i[0], 0); }, {input({4, 2})}},
  };
});

const AddCases add_dropout_cases([] {
  return std::vector<Case>{
      {"dropout",
       [](const Inputs& i) {
         default_generator().manual_seed(3);
         return dropout(i[0], 0.4);
       },
       {input({20})}},
  };
});

}  // namespace
}  // namespace brigade::test::activation_cases
