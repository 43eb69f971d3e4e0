// Products of matrices and vectors, einsum and attention, for the checks of derivatives.
#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>
#include <brigade/core/random.h>
#include "../cases.h"

namespace brigade::test::products_cases {
namespace {

const AddCases add_matmul_cases([] {
  return std::vector<Case>{
      {"matmul", [](const Inputs& i) { return matmul(i[0], i[1]); }, {input({2, 3}), input({3, 4}, 2)}},
      {"matmul batch", [](const Inputs& i) { return matmul(i[0], i[1]); }, {input({2, 1, 2, 3}), input({4, 3, 2}, 2)}},
      {"matmul vectors", [](const Inputs& i) { return matmul(i[0], i[1]); }, {input({3}), input({3}, 2)}},
      {"matmul matrix vector", [](const Inputs& i) { return matmul(i[0], i[1]); }, {input({2, 3}), input({3}, 2)}},
      {"matmul vector batch", [](const Inputs& i) { return matmul(i[0], i[1]); }, {input({3}), input({2, 3, 2}, 2)}},
      {"matmul transposed",
       [](const Inputs& i) { return matmul(i[0].t(), i[1].t()); },
       {input({3, 2}), input({4, 3}, 2)}},
      {"matmul itself", [](const Inputs& i) { return matmul(i[0], i[0]); }, {input({3, 3})}},
      {"mm", [](const Inputs& i) { return mm(i[0], i[1]); }, {input({2, 3}), input({3, 2}, 2)}},
      {"bmm", [](const Inputs& i) { return bmm(i[0], i[1]); }, {input({2, 2, 3}), input({2, 3, 2}, 2)}},
      {"linear",
       [](const Inputs& i) { return linear(i[0], i[1], i[2]); },
       {input({2, 2, 3}), input({4, 3}, 2), input({4}, 3)}},
      {"linear without bias", [](const Inputs& i) { return linear(i[0], i[1]); }, {input({3}), input({4, 3}, 2)}},
      {"linear_relu",
       [](const Inputs& i) { return linear_relu(i[0], i[1], i[2]); },
       {input({2, 2, 3}), input({4, 3}, 2), input({4}, 3)}},
      {"linear_relu without bias",
       [](const Inputs& i) { return linear_relu(i[0], i[1]); },
       {input({3}), input({4, 3}, 2)}},
      {"linear_gelu",
       [](const Inputs& i) { return linear_gelu(i[0], i[1], i[2]); },
       {input({2, 2, 3}), input({4, 3}, 2), input({4}, 3)},
       {.roundings = 2}},  // a sum, and a function of it
      {"linear_gelu without bias",
       [](const Inputs& i) { return linear_gelu(i[0], i[1]); },
       {input({3}), input({4, 3}, 2)},
       {.roundings = 2}},
  };
});

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
}  // namespace brigade::test::products_cases
