#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::ternary_cases {

namespace {

const AddCases add_ternary_cases([] {
  return std::vector<Case>{
      {"addcmul",
       [](const Inputs& i) { return addcmul(i[0], i[1], i[2], 0.7); },
       {input({2, 3}), input({3}, 2), input({2, 1}, 3)}},
      {"addcdiv",
       [](const Inputs& i) { return addcdiv(i[0], i[1], i[2], 0.7); },
       {input({2, 3}), input({2, 3}, 2), input({3}, 3)}},
      {"lerp",
       [](const Inputs& i) { return lerp(i[0], i[1], i[2]); },
       {input({2, 3}), input({3}, 2), input({2, 3}, 3)}},
      {"lerp number",
       [](const Inputs& i) { return lerp(i[0], i[1], 0.3) * lerp(i[0], i[1], 0.8); },
       {input({2, 3}), input({3}, 2)}},
  };
});

}  // namespace

}  // namespace brigade::test::ternary_cases
