#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::layer_norm_cases {

namespace {

const AddCases add_layer_norm_cases([] {
  return std::vector<Case>{
      {"layer_norm",
       [](const Inputs& i) { return layer_norm(i[0], {4}, i[1], i[2], 1e-3) * i[3]; },
       {input({2, 3, 4}), input({4}, 2), input({4}, 3), fixed({2, 3, 4}, 4)},
       {.roundings = 4}},
      {"layer_norm over two dimensions, plain",
       [](const Inputs& i) {
         return layer_norm(i[0], {3, 4}) * i[1];
       },
       {input({2, 3, 4}), fixed({2, 3, 4}, 4)},
       {.roundings = 4}},
      {"rms_norm",
       [](const Inputs& i) { return rms_norm(i[0], {4}, i[1], 1e-3) * i[2]; },
       {input({3, 4}), input({4}, 2), fixed({3, 4}, 4)}},
      {"rms_norm plain",
       [](const Inputs& i) {
         return rms_norm(i[0], {2, 2}) * i[1];
       },
       {input({3, 2, 2}), fixed({3, 2, 2}, 4)}},
  };
});

}  // namespace

}  // namespace brigade::test::layer_norm_cases
