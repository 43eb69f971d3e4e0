// Convolutions, pools, folds, interpolation, embedding and normalization, for the checks of derivatives.
#include <brigade/autograd/backward.h>
#include <brigade/autograd/detail/conv_nodes.h>
#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>
#include "../cases.h"

namespace brigade::test::layers_cases {
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

const AddCases add_fold_cases([] {
  return std::vector<Case>{
      {"unfold",
       [](const Inputs& i) {
         return unfold(i[0], {2, 3}, {.dilation = {2, 1}, .padding = {1, 0}, .stride = {1, 2}});
       },
       {input({2, 2, 4, 5})}},
      {"unfold of one image", [](const Inputs& i) { return unfold(i[0], 2); }, {input({2, 3, 4})}},
      {"fold",
       [](const Inputs& i) {
         return fold(i[0], {4, 5}, {2, 3}, {.padding = 1, .stride = {2, 1}});
       },
       {input({2, 12, 15})}},
      {"fold of one image", [](const Inputs& i) { return fold(i[0], 3, 2); }, {input({8, 4})}},
      {"pixel_shuffle", [](const Inputs& i) { return pixel_shuffle(i[0], 2); }, {input({2, 8, 2, 3})}},
      {"pixel_unshuffle", [](const Inputs& i) { return pixel_unshuffle(i[0], 2); }, {input({2, 4, 6})}},
  };
});

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

const AddCases add_embedding_cases([] {
  const Tensor classes = tensor<int64_t>({2, 0, 1, 2});
  const Tensor dense = tensor(std::vector<int64_t>{0, 2, 1, 1, 0, 2, 2, 1}, {2, 2, 2});
  return std::vector<Case>{
      {"embedding", [](const Inputs& i) { return embedding(i[1], i[0]); }, {input({4, 3}), classes}},
      {"embedding dense", [](const Inputs& i) { return embedding(i[1], i[0]); }, {input({3, 2}), dense}},
      {"embedding with padding",
       [](const Inputs& i) { return embedding(i[1], i[0], 1) * i[2]; },
       {input({4, 3}), tensor<int64_t>({2, 0, 3, 2}), fixed({4, 3}, 1)}},
      {"index_select",
       [](const Inputs& i) { return index_select(i[0], 0, i[1]) * i[2]; },
       {input({3, 2}), tensor<int64_t>({1, 1, 0}), fixed({3, 2}, 1)}},
      {"index_select inner",
       [](const Inputs& i) { return index_select(i[0], 1, i[1]) * i[2]; },
       {input({3, 3}), tensor<int64_t>({2, 0}), fixed({3, 2}, 1)}},
  };
});

const AddCases add_batch_norm_cases([] {
  return std::vector<Case>{
      {"batch_norm",
       [](const Inputs& i) { return batch_norm(i[0], i[1], i[2], {}, {}, true); },
       {input({3, 2, 2, 2}), input({2}, 2), input({2}, 3)},
       {.roundings = 2, .contiguous_from = 1, .why_contiguous = "parameters and statistics of channels are"}},
      {"batch_norm eval",
       [](const Inputs& i) { return batch_norm(i[0], i[1], i[2], i[3], i[4], false); },
       {input({3, 2, 2}), input({2}, 2), input({2}, 3), fixed({2}, 4), fixed({2}, 5) + 0.5},
       {.roundings = 2, .contiguous_from = 1, .why_contiguous = "parameters and statistics of channels are"}},
  };
});

const AddCases add_layer_norm_cases([] {
  return std::vector<Case>{
      {"layer_norm",
       [](const Inputs& i) { return layer_norm(i[0], {4}, i[1], i[2], 1e-3) * i[3]; },
       {input({2, 3, 4}), input({4}, 2), input({4}, 3), fixed({2, 3, 4}, 4)},
       {.roundings = 4}},
      {"layer_norm over two dimensions, plain",
       [](const Inputs& i) {
         return layer_norm(i[0], {3, 4}) * i[1];
       },
       {input({2, 3, 4}), fixed({2, 3, 4}, 4)},
       {.roundings = 4}},
      {"rms_norm",
       [](const Inputs& i) { return rms_norm(i[0], {4}, i[1], 1e-3) * i[2]; },
       {input({3, 4}), input({4}, 2), fixed({3, 4}, 4)}},
      {"rms_norm plain",
       [](const Inputs& i) {
         return rms_norm(i[0], {2, 2}) * i[1];
       },
       {input({3, 2, 2}), fixed({3, 2, 2}, 4)}},
  };
});

const AddCases add_group_norm_cases([] {
  return std::vector<Case>{
      {"group_norm",
       [](const Inputs& i) { return group_norm(i[0], 2, i[1], i[2], 1e-3) * i[3]; },
       {input({2, 4, 3}), input({4}, 2), input({4}, 3), fixed({2, 4, 3}, 4)},
       {.roundings = 4}},
      {"group_norm plain",
       [](const Inputs& i) { return group_norm(i[0], 1) * i[1]; },
       {input({2, 2, 2, 2}), fixed({2, 2, 2, 2}, 4)},
       {.roundings = 4}},
      {"group_norm of rows, gain alone",
       [](const Inputs& i) { return group_norm(i[0], 2, i[1], {}, 1e-3) * i[2]; },
       {input({3, 6}), input({6}, 2), fixed({3, 6}, 4)},
       {.roundings = 4}},
      {"instance_norm",
       [](const Inputs& i) { return instance_norm(i[0], {}, {}, i[1], i[2], true, 0.1, 1e-3) * i[3]; },
       {input({2, 2, 4}), input({2}, 2), input({2}, 3), fixed({2, 2, 4}, 4)},
       {.roundings = 4}},
      {"batch_norm by instance_norm",
       [](const Inputs& i) { return instance_norm(i[0], i[3], i[4], i[1], i[2], false); },
       {input({3, 2, 2}), input({2}, 2), input({2}, 3), fixed({2}, 4), fixed({2}, 5) + 0.5},
       {.roundings = 2, .contiguous_from = 1, .why_contiguous = "parameters and statistics of channels are"}},
  };
});

}  // namespace
}  // namespace brigade::test::layers_cases
