#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::products_cases {

namespace {

const AddCases add_products_cases([] {
  return std::vector<Case>{
      {"dot", [](const Inputs& i) { return dot(i[0], i[1]); }, {input({3}), input({3}, 2)}},
      {"mv", [](const Inputs& i) { return mv(i[0], i[1]); }, {input({2, 3}), input({3}, 2)}},
      {"outer", [](const Inputs& i) { return outer(i[0], i[1]); }, {input({2}), input({3}, 2)}},
      {"addmm",
       [](const Inputs& i) { return addmm(i[0], i[1], i[2], 0.5, 2); },
       {input({4}), input({2, 3}, 2), input({3, 4}, 3)},
       {.roundings = 2}},
      {"addmm without input",
       [](const Inputs& i) { return addmm(i[0].detach(), i[1], i[2], 0); },
       {input({2, 4}).detach(), input({2, 3}, 2), input({3, 4}, 3)}},
      {"addmv",
       [](const Inputs& i) { return addmv(i[0], i[1], i[2]); },
       {input({2}), input({2, 3}, 2), input({3}, 3)},
       {.roundings = 2}},
      {"baddbmm",
       [](const Inputs& i) { return baddbmm(i[0], i[1], i[2], -1, 0.5); },
       {input({2, 1, 4}), input({2, 3, 2}, 2), input({2, 2, 4}, 3)},
       {.roundings = 2}},
      {"addbmm",
       [](const Inputs& i) { return addbmm(i[0], i[1], i[2], 2, 3); },
       {input({3, 4}), input({2, 3, 2}, 2), input({2, 2, 4}, 3)},
       {.roundings = 2}},
      {"bilinear",
       [](const Inputs& i) { return bilinear(i[0], i[1], i[2], i[3]); },
       {input({2, 2, 3}), input({2, 2, 4}, 2), input({5, 3, 4}, 3), input({5}, 4)},
       {.roundings = 4}},
      {"bilinear without bias",
       [](const Inputs& i) { return bilinear(i[0], i[1], i[2]); },
       {input({3}), input({2}, 2), input({2, 3, 2}, 3)},
       {.roundings = 4}},
      {"kron", [](const Inputs& i) { return kron(i[0], i[1]); }, {input({2, 3}), input({2, 1, 2}, 2)}},
      {"trace", [](const Inputs& i) { return trace(i[0]); }, {input({3, 4})}},
  };
});

}  // namespace

}  // namespace brigade::test::products_cases
