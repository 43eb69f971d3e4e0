#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::concat_cases {

namespace {

const AddCases add_concat_cases([] {
  return std::vector<Case>{
      {"cat",
       [](const Inputs& i) {
         return cat({i[0], i[1]}, 1) * i[2];
       },
       {input({2, 3}), input({2, 2}, 2), fixed({2, 5}, 1)}},
      {"stack",
       [](const Inputs& i) {
         return stack({i[0], i[1], i[0]}, 1) * i[2];
       },
       {input({2, 3}), input({2, 3}, 2), fixed({2, 3, 3}, 1)}},
      {"split",
       [](const Inputs& i) { return split(i[0], 2, 1)[1] * split(i[0], 2, 1)[0].slice(1, 0, 1); },
       {input({2, 3})}},
      {"chunk", [](const Inputs& i) { return chunk(i[0], 2)[1] * 3.0; }, {input({4, 2})}},
  };
});

}  // namespace

}  // namespace brigade::test::concat_cases
