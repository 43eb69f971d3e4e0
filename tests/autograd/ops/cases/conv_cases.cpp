#include "../cases.h"

#include <brigade/autograd/detail/conv_nodes.h>
#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>

namespace brigade::test::conv_cases {

namespace {

const AddCases add_conv_cases([] {
  return std::vector<Case>{
      {"conv2d",
       [](const Inputs& i) { return conv2d(i[0], i[1], i[2]); },
       {input({2, 2, 4, 5}), input({3, 2, 3, 2}, 2), input({3}, 3)}},
      {"conv2d strided",
       [](const Inputs& i) {
         return conv2d(i[0], i[1], {}, {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}});
       },
       {input({1, 2, 5, 5}), input({2, 2, 3, 2}, 2)}},
      {"conv2d groups",
       [](const Inputs& i) { return conv2d(i[0], i[1], i[2], {.groups = 2}); },
       {input({2, 4, 3, 3}), input({2, 2, 2, 2}, 2), input({2}, 3)}},
      {"conv2d of one image, same size",
       [](const Inputs& i) { return conv2d(i[0], i[1], i[2], {.padding = "same"}); },
       {input({2, 4, 5}), input({3, 2, 3, 2}, 2), input({3}, 3)}},
      {"conv1d",
       [](const Inputs& i) {
         return conv1d(i[0], i[1], i[2], {.stride = 2, .padding = 1, .dilation = 2, .groups = 2});
       },
       {input({2, 4, 9}), input({4, 2, 3}, 2), input({4}, 3)}},
      {"conv1d of one sequence",
       [](const Inputs& i) { return conv1d(i[0], i[1]); },
       {input({2, 6}), input({3, 2, 3}, 2)}},
      {"conv_transpose2d",
       [](const Inputs& i) {
         return conv_transpose2d(i[0], i[1], i[2], {.stride = {2, 1}, .padding = {1, 0}, .output_padding = {1, 0}});
       },
       {input({2, 2, 3, 4}), input({2, 3, 3, 2}, 2), input({3}, 3)}},
      {"conv_transpose2d groups, dilation, more output_padding than stride",
       [](const Inputs& i) {
         return conv_transpose2d(i[0], i[1], {},
                                 {.stride = {1, 2}, .output_padding = {1, 1}, .groups = 2, .dilation = {2, 1}});
       },
       {input({4, 2, 3}), input({4, 1, 2, 2}, 2)}},
      {"conv_transpose1d",
       [](const Inputs& i) {
         return conv_transpose1d(i[0], i[1], i[2], {.stride = 2, .padding = 1, .output_padding = 1});
       },
       {input({2, 3, 4}), input({3, 2, 3}, 2), input({2}, 3)}},
      {"conv_backward_input",
       [](const Inputs& i) {
         return autograd::detail::convolution_backward_input({.op = "conv_backward_input"}, i[0], i[1], {},
                                                             {2, 2, 4, 4}, {.stride = {2, 1}, .padding = {1, 0}});
       },
       {input({2, 3, 2, 3}), input({3, 2, 3, 2}, 2)}},
      {"conv_backward_weight",
       [](const Inputs& i) {
         return autograd::detail::convolution_backward_weight({.op = "conv_backward_weight"}, i[0], i[1], {3, 2, 3},
                                                              {.stride = {1, 2}, .padding = {0, 1}});
       },
       {input({2, 3, 3}), input({2, 2, 5}, 2)}},
  };
});

}  // namespace

}  // namespace brigade::test::conv_cases
