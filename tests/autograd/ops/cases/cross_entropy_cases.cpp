#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::cross_entropy_cases {

namespace {

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

}  // namespace brigade::test::cross_entropy_cases
