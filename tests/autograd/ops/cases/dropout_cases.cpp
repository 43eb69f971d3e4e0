#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>
#include <brigade/core/random.h>

namespace brigade::test::dropout_cases {

namespace {

const AddCases add_dropout_cases([] {
  return std::vector<Case>{
      {"dropout",
       [](const Inputs& i) {
         default_generator().manual_seed(3);
         return dropout(i[0], 0.4);
       },
       {input({20})}},
  };
});

}  // namespace

}  // namespace brigade::test::dropout_cases
