#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::power_cases {

namespace {

const AddCases add_power_cases([] {
  return std::vector<Case>{
      {"pow", [](const Inputs& i) { return pow(i[0], i[1]); }, {input({2, 3}, 1, true), input({3}, 2)}},
      {"pow of a negative base",
       [](const Inputs& i) { return pow(i[0], i[1]); },
       {input({2, 3}), tensor(std::vector<double>{2, 3, -1}, {3})}},
      {"pow of fixed numbers", [](const Inputs& i) { return pow(i[0], i[1]); }, {fixed({2, 1}, 3), input({3}, 2)}},
      {"pow number",
       [](const Inputs& i) { return pow(i[0], 1.7) + pow(i[0], 0.5) + pow(i[0], 0.0); },
       {input({7}, 1, true)}},
      {"pow whole number",
       [](const Inputs& i) { return pow(i[0], 2.0) + pow(i[0], 3.0) - pow(i[0], -1.0); },
       {input({7})}},
      {"number pow", [](const Inputs& i) { return pow(0.3, i[0]); }, {input({7})}},
      {"atan2", [](const Inputs& i) { return brigade::atan2(i[0], i[1]); }, {input({2, 3}), input({3}, 2)}},
      {"remainder", [](const Inputs& i) { return remainder(i[0] * 3.0, i[1]); }, {input({2, 3}), input({3}, 2)}},
      {"remainder number", [](const Inputs& i) { return remainder(i[0] * 3.0, -0.7); }, {input({7})}},
      {"fmod", [](const Inputs& i) { return brigade::fmod(i[0] * 3.0, i[1]); }, {input({2, 3}), input({3}, 2)}},
      {"fmod number", [](const Inputs& i) { return brigade::fmod(i[0] * 3.0, 0.7); }, {input({7})}},
  };
});

}  // namespace

}  // namespace brigade::test::power_cases
