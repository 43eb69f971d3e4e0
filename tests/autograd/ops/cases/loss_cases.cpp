// Losses, for the checks of derivatives.
#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>
#include "../cases.h"

#include <cmath>

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

const AddCases add_cross_entropy_cases([] {
  const Tensor classes = tensor<int64_t>({2, 0, 1, 2});
  const Tensor ignored = tensor<int64_t>({2, -100, 1, 2});
  const Tensor dense = tensor(std::vector<int64_t>{0, 2, 1, 1, 0, 2, 2, 1}, {2, 2, 2});
  const Tensor weight = fixed({3}, 5) + 0.5;
  return std::vector<Case>{
      {"cross_entropy", [](const Inputs& i) { return cross_entropy(i[0], i[1]); }, {input({4, 3}), classes}},
      {"cross_entropy of one row",
       [](const Inputs& i) { return cross_entropy(i[0], i[1]); },
       {input({3}), scalar_tensor<int64_t>(1)}},
      {"cross_entropy ignored", [](const Inputs& i) { return cross_entropy(i[0], i[1]); }, {input({4, 3}), ignored}},
      {"cross_entropy none",
       [](const Inputs& i) { return cross_entropy(i[0], i[1], Reduction::None); },
       {input({4, 3}), classes}},
      {"cross_entropy dense",
       [](const Inputs& i) { return cross_entropy(i[0], i[1], Reduction::Sum); },
       {input({2, 3, 2, 2}), dense}},
      {"cross_entropy weighted",
       [](const Inputs& i) { return cross_entropy(i[0], i[1], {.weight = i[2], .label_smoothing = 0.2}); },
       {input({4, 3}), ignored, weight}},
      {"cross_entropy dense, weighted, each",
       [](const Inputs& i) {
         return cross_entropy(
             i[0], i[1], {.weight = i[2], .ignore_index = 1, .reduction = Reduction::None, .label_smoothing = 0.2});
       },
       {input({2, 3, 2, 2}), dense, weight}},
      {"cross_entropy of probabilities",
       [](const Inputs& i) { return cross_entropy(i[0], i[1], {.weight = i[2], .label_smoothing = 0.1}); },
       {input({4, 3}), input({4, 3}, 2, true), weight},
       {.roundings = 2}},
      {"cross_entropy of probabilities, dense",
       [](const Inputs& i) { return cross_entropy(i[0], i[1], Reduction::None); },
       {input({2, 3, 2}), input({2, 3, 2}, 2, true)},
       {.roundings = 2}},
      {"nll_loss", [](const Inputs& i) { return nll_loss(i[0], i[1]); }, {input({4, 3}), ignored}},
      {"nll_loss weighted",
       [](const Inputs& i) { return nll_loss(i[0], i[1], {.weight = i[2], .ignore_index = 0}); },
       {input({2, 3, 2, 2}), dense, weight}},
      {"nll_loss none",
       [](const Inputs& i) { return nll_loss(i[0], i[1], Reduction::None); },
       {input({2, 3, 2, 2}), dense}},
  };
});

}  // namespace
}  // namespace brigade::test::loss_cases
