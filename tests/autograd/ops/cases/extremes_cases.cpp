#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::extremes_cases {

namespace {

const AddCases add_extremes_cases([] {
  return std::vector<Case>{
      {"max", [](const Inputs& i) { return max(i[0], 1).values; }, {input({3, 4})}},
      {"min", [](const Inputs& i) { return min(i[0], 0, true).values; }, {input({3, 4})}},
      {"max of a number", [](const Inputs& i) { return max(i[0], 0).values; }, {input({})}},
      {"max of all", [](const Inputs& i) { return max(i[0]); }, {input({3, 4})}},
      {"min of all", [](const Inputs& i) { return min(i[0]); }, {input({3, 4})}},
      {"amax", [](const Inputs& i) { return amax(i[0], {1}); }, {input({3, 4})}},
      {"amax dims",
       [](const Inputs& i) {
         return amax(i[0], {0, -1}, true);
       },
       {input({2, 3, 4})}},
      {"amin", [](const Inputs& i) { return amin(i[0]); }, {input({3, 4})}},
      {"amin dims",
       [](const Inputs& i) {
         return amin(i[0], {1, 2});
       },
       {input({2, 3, 4})}},
  };
});

}  // namespace

}  // namespace brigade::test::extremes_cases
