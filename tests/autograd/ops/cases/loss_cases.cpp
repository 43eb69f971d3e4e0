#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test {

namespace {

const AddCases add_loss_cases([] {
  const Tensor classes = tensor<int64_t>({2, 0, 1, 2});
  const Tensor ignored = tensor<int64_t>({2, -100, 1, 2});
  const Tensor dense = tensor(std::vector<int64_t>{0, 2, 1, 1, 0, 2, 2, 1}, {2, 2, 2});
  return std::vector<Case>{
      {"cross_entropy", [](const Inputs& i) { return cross_entropy(i[0], i[1]); }, {input({4, 3}), classes}},
      {"cross_entropy ignored", [](const Inputs& i) { return cross_entropy(i[0], i[1]); }, {input({4, 3}), ignored}},
      {"cross_entropy none",
       [](const Inputs& i) { return cross_entropy(i[0], i[1], Reduction::None); },
       {input({4, 3}), classes}},
      {"cross_entropy dense",
       [](const Inputs& i) { return cross_entropy(i[0], i[1], Reduction::Sum); },
       {input({2, 3, 2, 2}), dense}},
      {"binary_cross_entropy_with_logits",
       [](const Inputs& i) { return binary_cross_entropy_with_logits(i[0], i[1]); },
       {input({5}), input({5}, 2, true)}},
      {"binary_cross_entropy_with_logits none",
       [](const Inputs& i) { return binary_cross_entropy_with_logits(i[0], i[1], Reduction::None); },
       {input({5}), fixed({5}, 3)}},
      {"mse_loss", [](const Inputs& i) { return mse_loss(i[0], i[1]); }, {input({2, 3}), input({2, 3}, 2)}},
      {"mse_loss sum",
       [](const Inputs& i) { return mse_loss(i[0], i[1], Reduction::Sum); },
       {input({2, 3}), fixed({2, 3}, 3)}},
      {"l1_loss", [](const Inputs& i) { return l1_loss(i[0], i[1]); }, {input({2, 3}), input({2, 3}, 2)}},
  };
});

}  // namespace

}  // namespace brigade::test
