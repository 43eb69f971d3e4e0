#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::reduce_cases {

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
      {"prod", [](const Inputs& i) { return prod(i[0]); }, {input({2, 3})}, {.roundings = 3}},
      {"prod last", [](const Inputs& i) { return prod(i[0], {-1}); }, {input({2, 5})}, {.roundings = 3}},
      {"prod dims",
       [](const Inputs& i) {
         return prod(i[0], {0, 2}, true);
       },
       {input({2, 3, 4})},
       {.roundings = 3}},
      {"prod with a zero",
       [](const Inputs& i) { return prod(i[0] * i[1], {1}); },
       {input({2, 3}), tensor<double>({1, 0, 1, 0, 1, 0}, {2, 3})},
       {.roundings = 3}},
      {"prod of one", [](const Inputs& i) { return prod(i[0], {1}); }, {input({2, 1})}},
      {"logsumexp", [](const Inputs& i) { return logsumexp(i[0], {1}); }, {input({2, 5})}},
      {"logsumexp of all", [](const Inputs& i) { return logsumexp(i[0]); }, {input({2, 5})}},
      {"logsumexp dims",
       [](const Inputs& i) {
         return logsumexp(i[0], {0, 2}, true);
       },
       {input({2, 3, 4})}},
      {"sum_to",
       [](const Inputs& i) {
         return sum_to(i[0], {1, 3});
       },
       {input({2, 4, 3})}},
  };
});

}  // namespace

}  // namespace brigade::test::reduce_cases
