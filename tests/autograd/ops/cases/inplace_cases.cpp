#include "../cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

namespace brigade::test::inplace_cases {
namespace {

const AddCases add_inplace_cases([] {
  return std::vector<Case>{
      {"add_", [](const Inputs& i) { return (i[0] * 1.0).add_(i[1], 0.5) * 2.0; }, {input({2, 3}), input({3}, 2)}},
      {"mul_", [](const Inputs& i) { return (i[0] * 1.0).mul_(i[1]) * 2.0; }, {input({2, 3}), input({3}, 2)}},
      {"mul_ number", [](const Inputs& i) { return (i[0] * 1.0).mul_(-1.5); }, {input({3})}},
      {"copy_", [](const Inputs& i) { return (i[0] * 1.0).copy_(i[1]) * i[0]; }, {input({2, 3}), input({3}, 2)}},
      {"fill_", [](const Inputs& i) { return (i[0] * 1.0).fill_(2) * i[0]; }, {input({3})}},
      {"sub_", [](const Inputs& i) { return sub_(i[0] * 1.0, i[1], 0.5) * i[0]; }, {input({2, 3}), input({3}, 2)}},
      {"div_", [](const Inputs& i) { return div_(div_(i[0] * 1.0, i[1]), 3.0); }, {input({2, 3}), input({3}, 2)}},
      {"functions in place",
       [](const Inputs& i) { return exp_(neg_(tanh_(sigmoid_(i[0] * 2.0)))) * i[0]; },
       {input({2, 3})},
       {.roundings = 4}},
      {"more functions in place",
       [](const Inputs& i) { return sqrt_(exp_(relu_(leaky_relu_(i[0] * 2.0, 0.2)))) * i[0]; },
       {input({2, 3})},
       {.roundings = 4}},
      {"write through a view",
       [](const Inputs& i) {
         const Tensor y = i[0] * 2.0;
         y.select(0, 1).mul_(i[1]);
         return y * y;
       },
       {input({2, 3}), input({3}, 2)}},
      {"write through a view of a view",
       [](const Inputs& i) {
         const Tensor y = i[0] * 2.0;
         const Tensor first = y.t();
         first.slice(0, 1, 3).copy_(i[1]);
         return first * y.t() + first;
       },
       {input({2, 3}), input({2, 2}, 2)}},
      {"a view takes over what is written to its base",
       [](const Inputs& i) {
         const Tensor y = i[0] * 2.0;
         const Tensor view = y.slice(1, 0, 3, 2);
         const Tensor wide = y.unsqueeze(0).expand({2, 2, 3});
         y.mul_(i[1]);
         return view.unsqueeze(0) * wide.slice(2, 0, 3, 2) + view;
       },
       {input({2, 3}), input({3}, 2)}},
      {"parts assembled in a plain tensor",
       [](const Inputs& i) {
         const Tensor all = zeros({3, 2}, i[0].options());
         const Tensor before = all.t();
         all.select(0, 0).copy_(i[0]);
         all.select(0, 2).add_(i[1]);
         all.select(0, 2).mul_(i[0]);
         return before * all.t() + 1.0;
       },
       {input({2}), input({2}, 2)}},
      {"one view writes, another reads",
       [](const Inputs& i) {
         const Tensor y = i[0] * 1.0;
         const Tensor left = y.slice(1, 0, 2);
         const Tensor right = y.slice(1, 1, 3);
         left.add_(i[1]);
         right.mul_(2.0);
         left.mul_(left);
         return left * right * y.slice(1, 0, 1);
       },
       {input({2, 3}), input({2}, 2)},
       {.roundings = 4}},
  };
});

}  // namespace
}  // namespace brigade::test::inplace_cases
