#include "../cases.h"

#include <brigade/autograd/backward.h>
#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::interpolate_cases {

namespace {

const AddCases add_interpolate_cases([] {
  return std::vector<Case>{
      {"interpolate nearest",
       [](const Inputs& i) {
         return interpolate(i[0], {.size = {{5, 2}}});
       },
       {input({2, 2, 3, 4})}},
      {"interpolate bilinear",
       [](const Inputs& i) {
         return interpolate(i[0], {.scale_factor = {{2.3, 0.7}}, .mode = InterpolateMode::Bilinear});
       },
       {input({2, 1, 3, 4})}},
      {"interpolate aligned",
       [](const Inputs& i) {
         return interpolate(i[0], {.size = {{1, 7}}, .mode = InterpolateMode::Bilinear, .align_corners = true});
       },
       {input({1, 2, 4, 3})}},
      {"interpolate bicubic",
       [](const Inputs& i) {
         return interpolate(i[0], {.scale_factor = {{2.3, 0.7}}, .mode = InterpolateMode::Bicubic});
       },
       {input({2, 1, 3, 5})},
       {.roundings = 8}},  // negative weights, and positions whose last bit depends on the device
      {"interpolate bicubic aligned",
       [](const Inputs& i) {
         return interpolate(i[0], {.size = {{5, 2}}, .mode = InterpolateMode::Bicubic, .align_corners = true});
       },
       {input({1, 2, 4, 3})}},
      {"interpolate linear",
       [](const Inputs& i) { return interpolate(i[0], {.size = {{7}}, .mode = InterpolateMode::Linear}); },
       {input({2, 3, 4})}},
      {"interpolate nearest of sequences",
       [](const Inputs& i) { return interpolate(i[0], {.scale_factor = {{1.5}}}); },
       {input({2, 3, 4})}},
      {"interpolate_backward",
       [](const Inputs& i) {
         const EnableGradGuard recording;
         const Tensor x = input({1, 2, 4, 3}, 5).detach().to(i[0].dtype()).to(i[0].device()).requires_grad_();
         const Tensor y = interpolate(x, {.size = {{3, 5}}, .mode = InterpolateMode::Bilinear});
         return autograd::grad(std::vector{y}, std::vector{x}, {.grad_outputs = {i[0]}, .create_graph = true})[0];
       },
       {input({1, 2, 3, 5})}},
  };
});

}  // namespace

}  // namespace brigade::test::interpolate_cases
