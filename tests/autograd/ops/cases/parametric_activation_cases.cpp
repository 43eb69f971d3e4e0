#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::parametric_activation_cases {

namespace {

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

}  // namespace

}  // namespace brigade::test::parametric_activation_cases
