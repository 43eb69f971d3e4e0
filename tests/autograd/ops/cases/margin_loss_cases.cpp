// Margin losses and distribution losses: composites, whose rows are named after their parts.
#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

#include <cmath>

namespace brigade::test::margin_loss_cases {

namespace {

Tensor labels(const Shape& sizes) {
  std::vector<double> values;
  for (int64_t i = 0; i < sizes.numel(); ++i)
    values.push_back(i % 3 == 1 ? -1 : 1);
  return tensor(values, sizes);
}

Case triplet(const std::string& name, double p, bool swap, Reduction reduction) {
  return {name,
          [=](const Inputs& i) {
            return triplet_margin_loss(i[0], i[1], i[2], {.margin = 2, .p = p, .swap = swap, .reduction = reduction});
          },
          {input({4, 3}), input({4, 3}, 2), input({4, 3}, 3)},
          {.roundings = 4}};
}

const AddCases add_margin_loss_cases([] {
  return std::vector<Case>{
      {"hinge_embedding_loss",
       [](const Inputs& i) { return hinge_embedding_loss(i[0], i[1], 0.2, Reduction::None); },
       {input({2, 3}), labels({2, 3})}},
      {"margin_ranking_loss",
       [](const Inputs& i) { return margin_ranking_loss(i[0], i[1], i[2], 0.1); },
       {input({2, 3}), input({3}, 2), labels({2, 3})},
       {.roundings = 2}},
      {"cosine_embedding_loss",
       [](const Inputs& i) { return cosine_embedding_loss(i[0], i[1], i[2], -0.9, Reduction::None); },
       {input({4, 3}), input({4, 3}, 2), labels({4})},
       {.roundings = 4}},
      {"soft_margin_loss",
       [](const Inputs& i) { return soft_margin_loss(i[0], i[1]); },
       {input({2, 3}), labels({2, 3})},
       {.roundings = 2}},
      triplet("triplet_margin_loss", 2, false, Reduction::Mean),
      triplet("triplet_margin_loss swapped", 2, true, Reduction::None),
      triplet("triplet_margin_loss of p 1", 1, false, Reduction::Sum),
      triplet("triplet_margin_loss of p 3", 3, false, Reduction::Sum),
      triplet("triplet_margin_loss of p infinity", INFINITY, false, Reduction::Sum),
      {"poisson_nll_loss",
       [](const Inputs& i) { return poisson_nll_loss(i[0], i[1] * 3.0, {.full = true}); },
       {input({2, 3}), input({2, 3}, 2, true)},
       {.roundings = 8}},
      {"poisson_nll_loss of rates",
       [](const Inputs& i) { return poisson_nll_loss(i[0], i[1], {.log_input = false, .reduction = Reduction::None}); },
       {input({2, 3}, 1, true), input({2, 3}, 2, true)},
       {.roundings = 2}},
      {"gaussian_nll_loss",
       [](const Inputs& i) { return gaussian_nll_loss(i[0], i[1], i[2], {.full = true}); },
       {input({2, 3}), input({2, 3}, 2), input({2}, 3, true)},
       {.roundings = 8}},
  };
});

}  // namespace

}  // namespace brigade::test::margin_loss_cases
