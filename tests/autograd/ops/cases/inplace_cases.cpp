#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test {

namespace {

const AddCases add_inplace_cases([] {
  return std::vector<Case>{
      {"add_", [](const Inputs& i) { return (i[0] * 1.0).add_(i[1], 0.5) * 2.0; }, {input({2, 3}), input({3}, 2)}},
      {"mul_", [](const Inputs& i) { return (i[0] * 1.0).mul_(i[1]) * 2.0; }, {input({2, 3}), input({3}, 2)}},
      {"mul_ number", [](const Inputs& i) { return (i[0] * 1.0).mul_(-1.5); }, {input({3})}},
      {"copy_", [](const Inputs& i) { return (i[0] * 1.0).copy_(i[1]) * i[0]; }, {input({2, 3}), input({3}, 2)}},
      {"fill_", [](const Inputs& i) { return (i[0] * 1.0).fill_(2) * i[0]; }, {input({3})}},
  };
});

}  // namespace

}  // namespace brigade::test
