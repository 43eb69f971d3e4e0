#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test {

namespace {

const AddCases add_reduce_cases([] {
  return std::vector<Case>{
      {"sum", [](const Inputs& i) { return sum(i[0]); }, {input({2, 3})}},
      {"sum dims",
       [](const Inputs& i) {
         return sum(i[0], {0, 2});
       },
       {input({2, 3, 4})}},
      {"sum keepdim", [](const Inputs& i) { return sum(i[0], {-1}, true); }, {input({2, 3})}},
      {"mean", [](const Inputs& i) { return mean(i[0], {1}); }, {input({2, 3})}},
      {"max", [](const Inputs& i) { return max(i[0], 1).values; }, {input({3, 4})}},
      {"min", [](const Inputs& i) { return min(i[0], 0, true).values; }, {input({3, 4})}},
      {"sum_to",
       [](const Inputs& i) {
         return sum_to(i[0], {1, 3});
       },
       {input({2, 4, 3})}},
  };
});

}  // namespace

}  // namespace brigade::test
