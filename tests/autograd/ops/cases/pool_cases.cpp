#include "../cases.h"

#include <brigade/autograd/backward.h>
#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::pool_cases {

namespace {

// An image of x's dtype, on x's device.
Tensor image_like(const Tensor& x) {
  return input({2, 4, 5}, 5).detach().to(x.dtype()).to(x.device()).requires_grad_();
}
// The gradient of y w.r.t. x for the output gradient `slope`, with a history.
Tensor gradient(const Tensor& y, const Tensor& x, const Tensor& slope) {
  return autograd::grad(std::vector{y}, std::vector{x}, {.grad_outputs = {slope}, .create_graph = true})[0];
}

const AddCases add_pool_cases([] {
  return std::vector<Case>{
      {"max_pool2d",
       [](const Inputs& i) {
         return max_pool2d(i[0], {2, 3}, {.stride = {1, 2}, .padding = 1});
       },
       {input({2, 2, 4, 5})}},
      {"avg_pool2d",
       [](const Inputs& i) {
         return avg_pool2d(i[0], {2, 3},
                           {.stride = {1, 2}, .padding = 1, .ceil_mode = true, .count_include_pad = false});
       },
       {input({2, 2, 4, 5})}},
      {"max_pool2d dilated",
       [](const Inputs& i) {
         return max_pool2d(i[0], {2, 3}, {.stride = 1, .padding = 1, .dilation = {2, 1}});
       },
       {input({2, 4, 5})}},
      {"max_pool2d_backward",
       [](const Inputs& i) {
         const EnableGradGuard recording;
         const Tensor x = image_like(i[0]);
         return gradient(max_pool2d(x, {2, 3}, {.stride = {1, 2}, .padding = 1}), x, i[0]);
       },
       {input({2, 5, 3})}},
      {"avg_pool2d_backward",
       [](const Inputs& i) {
         const EnableGradGuard recording;
         const Tensor x = image_like(i[0]);
         return gradient(avg_pool2d(x, {2, 3}, {.stride = {1, 2}, .padding = 1}), x, i[0]);
       },
       {input({2, 5, 3})}},
      {"avg_pool2d divisor",
       [](const Inputs& i) {
         return avg_pool2d(i[0], {3, 2}, {.stride = {2, 1}, .divisor_override = -3});
       },
       {input({1, 2, 5, 4})}},
      {"max_pool1d",
       [](const Inputs& i) { return max_pool1d(i[0], 3, {.stride = 2, .padding = 1, .ceil_mode = true}); },
       {input({2, 3, 8})}},
      {"avg_pool1d",
       [](const Inputs& i) { return avg_pool1d(i[0], 3, {.padding = 1, .count_include_pad = false}); },
       {input({3, 8})}},
      {"adaptive_avg_pool2d",
       [](const Inputs& i) {
         return adaptive_avg_pool2d(i[0], {3, std::nullopt});
       },
       {input({2, 2, 5, 4})}},
      {"adaptive_avg_pool1d", [](const Inputs& i) { return adaptive_avg_pool1d(i[0], 4); }, {input({2, 2, 7})}},
      {"adaptive_max_pool2d",
       [](const Inputs& i) {
         return adaptive_max_pool2d(i[0], {3, 2});
       },
       {input({2, 5, 4})}},
      {"adaptive_max_pool1d", [](const Inputs& i) { return adaptive_max_pool1d(i[0], 4); }, {input({2, 2, 7})}},
  };
});

}  // namespace

}  // namespace brigade::test::pool_cases
