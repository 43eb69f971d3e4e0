#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>
#include <brigade/core/random.h>

namespace brigade::test::attention_cases {

namespace {

const AddCases add_attention_cases([] {
  return std::vector<Case>{
      {"scaled_dot_product_attention",
       [](const Inputs& i) { return scaled_dot_product_attention(i[0], i[1], i[2]) * i[3]; },
       {input({2, 3, 4}), input({2, 5, 4}, 2), input({2, 5, 2}, 3), fixed({2, 3, 2}, 1)},
       {.roundings = 2}},
      {"scaled_dot_product_attention causal",
       [](const Inputs& i) { return scaled_dot_product_attention(i[0], i[1].transpose(0, 1), i[2], {}, 0, true, 0.7); },
       {input({2, 5, 4}), input({4, 2, 4}, 2), input({2, 4, 4}, 3)},
       {.roundings = 2}},
      {"scaled_dot_product_attention bool mask",
       [](const Inputs& i) { return scaled_dot_product_attention(i[0], i[1], i[2], i[3]); },
       {input({2, 3, 4}), input({2, 5, 4}, 2), input({2, 5, 4}, 3), gt(fixed({3, 5}, 6), 0.4)},
       {.roundings = 2}},
      {"scaled_dot_product_attention added mask",
       [](const Inputs& i) { return scaled_dot_product_attention(i[0], i[1], i[2], i[3]); },
       {input({2, 3, 4}), input({2, 5, 4}, 2), input({2, 5, 4}, 3), input({2, 1, 5}, 6)},
       {.roundings = 2}},
      {"scaled_dot_product_attention shared heads",
       [](const Inputs& i) { return scaled_dot_product_attention(i[0], i[1], i[2], i[3], 0, false, {}, true); },
       {input({4, 3, 2}), input({2, 5, 2}, 2), input({1, 5, 3}, 3), input({3, 5}, 6)},
       {.roundings = 2}},
      {"scaled_dot_product_attention dropout",
       [](const Inputs& i) {
         default_generator().manual_seed(3);
         return scaled_dot_product_attention(i[0], i[1], i[2], {}, 0.4);
       },
       {input({2, 3, 4}), input({2, 5, 4}, 2), input({2, 5, 4}, 3)},
       {.roundings = 2}},
      {"scaled_dot_product_attention itself",
       [](const Inputs& i) { return scaled_dot_product_attention(i[0], i[0], i[0]); },
       {input({3, 4})},
       {.roundings = 2}},
  };
});

}  // namespace

}  // namespace brigade::test::attention_cases
