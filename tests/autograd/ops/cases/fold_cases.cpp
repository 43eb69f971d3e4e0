#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::fold_cases {

namespace {

const AddCases add_fold_cases([] {
  return std::vector<Case>{
      {"unfold",
       [](const Inputs& i) {
         return unfold(i[0], {2, 3}, {.dilation = {2, 1}, .padding = {1, 0}, .stride = {1, 2}});
       },
       {input({2, 2, 4, 5})}},
      {"unfold of one image", [](const Inputs& i) { return unfold(i[0], 2); }, {input({2, 3, 4})}},
      {"fold",
       [](const Inputs& i) {
         return fold(i[0], {4, 5}, {2, 3}, {.padding = 1, .stride = {2, 1}});
       },
       {input({2, 12, 15})}},
      {"fold of one image", [](const Inputs& i) { return fold(i[0], 3, 2); }, {input({8, 4})}},
      {"pixel_shuffle", [](const Inputs& i) { return pixel_shuffle(i[0], 2); }, {input({2, 8, 2, 3})}},
      {"pixel_unshuffle", [](const Inputs& i) { return pixel_unshuffle(i[0], 2); }, {input({2, 4, 6})}},
  };
});

}  // namespace

}  // namespace brigade::test::fold_cases
