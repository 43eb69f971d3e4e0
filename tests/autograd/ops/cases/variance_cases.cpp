#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::variance_cases {

namespace {

const AddCases add_variance_cases([] {
  return std::vector<Case>{
      {"var", [](const Inputs& i) { return var(i[0]); }, {input({3, 4})}},
      {"var last", [](const Inputs& i) { return var(i[0], {-1}, 0); }, {input({3, 4})}},
      {"var middle", [](const Inputs& i) { return var(i[0], {1}, 1, true); }, {input({2, 3, 4})}},
      {"var scattered",
       [](const Inputs& i) {
         return var(i[0], {0, 2}, 2.5);
       },
       {input({2, 3, 4})}},
      {"std", [](const Inputs& i) { return std(i[0], {1}); }, {input({3, 4})}},
      {"std scattered",
       [](const Inputs& i) {
         return std(i[0], {0, 2}, 0, true);
       },
       {input({2, 3, 4})}},
      {"var_mean",
       [](const Inputs& i) {
         const SpreadAndMean found = var_mean(i[0], {1});
         return found.spread * found.mean;
       },
       {input({3, 4})},
       {.roundings = 2}},
      {"var_mean, the mean", [](const Inputs& i) { return var_mean(i[0], {0}, 1, true).mean; }, {input({3, 4})}},
      {"std_mean",
       [](const Inputs& i) {
         const SpreadAndMean found = std_mean(i[0], {0}, 0);
         return found.spread + found.mean;
       },
       {input({3, 4})},
       {.roundings = 2}},
  };
});

}  // namespace

}  // namespace brigade::test::variance_cases
