#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::clamp_cases {

namespace {

const AddCases add_clamp_cases([] {
  return std::vector<Case>{
      {"clamp", [](const Inputs& i) { return clamp(i[0], -0.5, 0.8); }, {input({7})}},
      {"clamp from below", [](const Inputs& i) { return clamp(i[0], -0.5); }, {input({7})}},
      {"clamp_min", [](const Inputs& i) { return clamp_min(i[0], 0.5); }, {input({7})}},
      {"clamp_max", [](const Inputs& i) { return clamp_max(i[0], 0.5); }, {input({7})}},
      {"clamp between tensors",
       [](const Inputs& i) { return clamp(i[0], i[1] - 1.0, i[2]); },
       {input({2, 5}), input({5}, 2), input({2, 1}, 3)}},
      {"clamp between crossing tensors",
       [](const Inputs& i) { return clamp(i[0], i[1], i[2]); },
       {input({2, 5}), input({5}, 2), input({2, 1}, 3)}},
      {"clamp above a tensor", [](const Inputs& i) { return clamp(i[0], i[1]); }, {input({2, 5}), input({5}, 2)}},
      {"clamp below a tensor", [](const Inputs& i) { return clamp_max(i[0], i[1]); }, {input({2, 5}), input({5}, 2)}},
  };
});

}  // namespace

}  // namespace brigade::test::clamp_cases
