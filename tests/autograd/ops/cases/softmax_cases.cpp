#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::softmax_cases {

namespace {

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

}  // namespace

}  // namespace brigade::test::softmax_cases
