#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test {

namespace {

const AddCases add_pool_cases([] {
  return std::vector<Case>{
      {"max_pool2d",
       [](const Inputs& i) {
         return max_pool2d(i[0], {{2, 3}, {1, 2}, {1, 1}});
       },
       {input({2, 2, 4, 5})}},
      {"avg_pool2d",
       [](const Inputs& i) {
         return avg_pool2d(i[0], {{2, 3}, {1, 2}, {1, 1}, true, false});
       },
       {input({2, 2, 4, 5})}},
  };
});

}  // namespace

}  // namespace brigade::test
