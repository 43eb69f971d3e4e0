#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::where_cases {

namespace {

const AddCases add_where_cases([] {
  return std::vector<Case>{
      {"where",
       [](const Inputs& i) { return brigade::where(gt(i[2], 0.5), i[0], i[1]); },
       {input({2, 3}), input({3}, 2), fixed({2, 1}, 3)}},
      {"where broadcast by its condition",
       [](const Inputs& i) { return brigade::where(gt(i[2], 0.5), i[0], i[1]); },
       {input({3}), input({1}, 2), fixed({4, 3}, 3)}},
      {"where number",
       [](const Inputs& i) {
         return brigade::where(gt(i[1], 0.5), i[0], 2.0) * brigade::where(gt(i[1], 0.3), 3.0, i[0]);
       },
       {input({5}), fixed({5}, 3)}},
      {"where of one that is differentiated",
       [](const Inputs& i) { return brigade::where(gt(i[2], 0.5), i[1], i[0]); },
       {input({2, 3}), fixed({3}, 2), fixed({2, 3}, 3)}},
      {"masked_fill",
       [](const Inputs& i) { return masked_fill(i[0], gt(i[1], 0.5), -2.0); },
       {input({2, 3}), fixed({3}, 3)}},
  };
});

}  // namespace

}  // namespace brigade::test::where_cases
