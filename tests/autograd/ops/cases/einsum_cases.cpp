#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::einsum_cases {

namespace {

const AddCases add_einsum_cases([] {
  return std::vector<Case>{
      {"einsum matrices",
       [](const Inputs& i) {
         return einsum("ij,jk->ki", {i[0], i[1]});
       },
       {input({2, 3}), input({3, 4}, 2)}},
      {"einsum batches",
       [](const Inputs& i) {
         return einsum("bhqd,bkhd->bhqk", {i[0], i[1]});
       },
       {input({2, 2, 3, 4}), input({2, 3, 2, 4}, 2)}},
      {"einsum element by element",
       [](const Inputs& i) {
         return einsum("ij,i->ji", {i[0], i[1]});
       },
       {input({2, 3}), input({2}, 2)}},
      {"einsum ellipsis",
       [](const Inputs& i) {
         return einsum("...ij,...jk", {i[0], i[1]});
       },
       {input({2, 1, 2, 3}), input({3, 3, 2}, 2)}},
      {"einsum diagonal", [](const Inputs& i) { return einsum("iji->ij", {i[0]}); }, {input({3, 2, 3})}},
      {"einsum sum", [](const Inputs& i) { return einsum("ijk->j", {i[0]}); }, {input({2, 3, 2})}},
      {"einsum with a stretched dimension",
       [](const Inputs& i) {
         return einsum("ij,jk,kl->il", {i[0], i[1], i[2]});
       },
       {input({2, 1}), input({3, 4}, 2), input({4, 2}, 3)},
       {.roundings = 4}},
      {"einsum bilinear form",
       [](const Inputs& i) {
         return einsum("bn,anm,bm->ba", {i[0], i[1], i[2]});
       },
       {input({2, 3}), input({5, 3, 4}, 2), input({2, 4}, 3)},
       {.roundings = 4}},
  };
});

}  // namespace

}  // namespace brigade::test::einsum_cases
