#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::loss_cases {

namespace {

// Numbers in 0.1 .. 0.9, where the logarithms of the losses of probabilities are smooth.
Tensor probabilities(const Shape& sizes, uint64_t seed) {
  return (fixed(sizes, seed) * 0.8 + 0.1).detach().requires_grad_();
}

const AddCases add_loss_cases([] {
  // Differences on both sides of the points where the distance losses change form, but none close to these points.
  const auto near = [] { return tensor(std::vector<double>{0.1, -0.2, 1.3, -1.4, 0.31, 2}, {2, 3}).requires_grad_(); };
  const auto around = [] { return tensor(std::vector<double>{0, 0.1, 0.1, 0.2, -0.3, 0.1}, {2, 3}).requires_grad_(); };
  return std::vector<Case>{
      {"mse_loss", [](const Inputs& i) { return mse_loss(i[0], i[1]); }, {input({2, 3}), input({2, 3}, 2)}},
      {"mse_loss sum",
       [](const Inputs& i) { return mse_loss(i[0], i[1], Reduction::Sum); },
       {input({2, 3}), fixed({2, 3}, 3)}},
      {"mse_loss none",
       [](const Inputs& i) { return mse_loss(i[0], i[1], Reduction::None); },
       {input({2, 3}), input({2, 3}, 3)}},
      {"l1_loss", [](const Inputs& i) { return l1_loss(i[0], i[1]); }, {input({2, 3}), input({2, 3}, 2)}},
      {"l1_loss none",
       [](const Inputs& i) { return l1_loss(i[0], i[1], Reduction::None); },
       {fixed({2, 3}, 3), input({2, 3}, 2)}},
      {"smooth_l1_loss",
       [](const Inputs& i) { return smooth_l1_loss(i[0], i[1], Reduction::Mean, 0.5); },
       {near(), around()}},
      {"smooth_l1_loss none",
       [](const Inputs& i) { return smooth_l1_loss(i[0], i[1], Reduction::None); },
       {near(), around()}},
      {"smooth_l1_loss of beta 0",
       [](const Inputs& i) { return smooth_l1_loss(i[0], i[1], Reduction::Sum, 0); },
       {near(), around()}},
      {"huber_loss", [](const Inputs& i) { return huber_loss(i[0], i[1], Reduction::Mean, 0.5); }, {near(), around()}},
      {"huber_loss none", [](const Inputs& i) { return huber_loss(i[0], i[1], Reduction::None); }, {near(), around()}},
      {"binary_cross_entropy",
       [](const Inputs& i) { return binary_cross_entropy(i[0], i[1]); },
       {probabilities({5}, 1), probabilities({5}, 2)},
       {.roundings = 4}},
      {"binary_cross_entropy weighted",
       [](const Inputs& i) { return binary_cross_entropy(i[0], i[1], {.weight = i[2]}); },
       {probabilities({2, 3}, 1), probabilities({2, 3}, 2), input({3}, 3)},
       {.roundings = 4}},
      {"binary_cross_entropy_with_logits",
       [](const Inputs& i) { return binary_cross_entropy_with_logits(i[0], i[1]); },
       {input({5}), input({5}, 2, true)}},
      {"binary_cross_entropy_with_logits none",
       [](const Inputs& i) { return binary_cross_entropy_with_logits(i[0], i[1], Reduction::None); },
       {input({5}), fixed({5}, 3)}},
      {"binary_cross_entropy_with_logits weighted",
       [](const Inputs& i) {
         return binary_cross_entropy_with_logits(i[0], i[1],
                                                 {.weight = i[2], .reduction = Reduction::Sum, .pos_weight = i[3]});
       },
       {input({2, 3}), input({2, 3}, 2, true), input({3}, 3), fixed({2, 1}, 4) + 0.5},
       {.roundings = 2}},
      {"kl_div",
       [](const Inputs& i) { return kl_div(i[0], i[1], KLDivReduction::BatchMean); },
       {input({2, 3}), input({2, 3}, 2, true)}},
      {"kl_div none",
       [](const Inputs& i) { return kl_div(i[0], i[1], KLDivReduction::None); },
       {input({2, 3}), input({2, 3}, 2, true)}},
      {"kl_div log",
       [](const Inputs& i) { return kl_div(i[0], i[1], KLDivReduction::Mean, true); },
       {input({2, 3}), input({2, 3}, 2)}},
  };
});

}  // namespace

}  // namespace brigade::test::loss_cases
