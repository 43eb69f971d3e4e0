#include "cases.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/factory.h>

namespace brigade::test {

namespace {

Tensor fixed(const Shape& sizes, uint64_t seed) {
  Generator generator(seed);
  return rand(sizes, {kFloat64}, &generator);
}

}  // namespace

Tensor input(const Shape& sizes, uint64_t seed, bool positive) {
  Generator generator(seed);
  const Tensor x = rand(sizes, {kFloat64}, &generator) * 1.2 + 0.3;
  const Tensor signs =
      positive ? ones(sizes, {kFloat64}) : gt(rand(sizes, {kFloat64}, &generator), 0.5).to(kFloat64) * 2.0 - 1.0;
  return (x * signs).detach().clone().requires_grad_();
}

std::vector<Case> cases() {
  const auto x = [](const Shape& sizes, uint64_t seed = 1, bool positive = false) {
    return input(sizes, seed, positive);
  };
  const Tensor classes = tensor<int64_t>({2, 0, 1, 2});
  const Tensor ignored = tensor<int64_t>({2, -100, 1, 2});
  const Tensor dense = tensor(std::vector<int64_t>{0, 2, 1, 1, 0, 2, 2, 1}, {2, 2, 2});
  return {
      {"add", [](const Inputs& i) { return i[0] + i[1]; }, {x({2, 3}), x({2, 3}, 2)}},
      {"add broadcast", [](const Inputs& i) { return i[0] + i[1]; }, {x({2, 1, 3}), x({4, 1}, 2)}},
      {"add number", [](const Inputs& i) { return 2.5 + i[0]; }, {x({3})}},
      {"sub", [](const Inputs& i) { return i[0] - i[1]; }, {x({2, 3}), x({3}, 2)}},
      {"sub number", [](const Inputs& i) { return (1.5 - i[0]) * 2.0 - (i[0] - 3.0); }, {x({3})}},
      {"mul", [](const Inputs& i) { return i[0] * i[1]; }, {x({2, 3}), x({2, 1}, 2)}},
      {"mul itself", [](const Inputs& i) { return i[0] * i[0]; }, {x({3})}},
      {"div", [](const Inputs& i) { return i[0] / i[1]; }, {x({2, 3}), x({3}, 2)}},
      {"div number", [](const Inputs& i) { return i[0] / 3.0 + 2.0 / i[0]; }, {x({4})}},
      {"maximum", [](const Inputs& i) { return maximum(i[0], i[1]); }, {x({2, 3}), x({3}, 2)}},
      {"minimum", [](const Inputs& i) { return minimum(i[0], i[1]); }, {x({2, 3}), x({3}, 2)}},
      {"neg", [](const Inputs& i) { return -i[0]; }, {x({3})}},
      {"abs", [](const Inputs& i) { return abs(i[0]); }, {x({5})}},
      {"exp", [](const Inputs& i) { return exp(i[0]); }, {x({5})}},
      {"log", [](const Inputs& i) { return log(i[0]); }, {x({5}, 1, true)}},
      {"sqrt", [](const Inputs& i) { return sqrt(i[0]); }, {x({5}, 1, true)}},
      {"reciprocal", [](const Inputs& i) { return reciprocal(i[0]); }, {x({5})}},
      {"square", [](const Inputs& i) { return square(i[0]); }, {x({5})}},
      {"sum", [](const Inputs& i) { return sum(i[0]); }, {x({2, 3})}},
      {"sum dims",
       [](const Inputs& i) {
         return sum(i[0], {0, 2});
       },
       {x({2, 3, 4})}},
      {"sum keepdim", [](const Inputs& i) { return sum(i[0], {-1}, true); }, {x({2, 3})}},
      {"mean", [](const Inputs& i) { return mean(i[0], {1}); }, {x({2, 3})}},
      {"max", [](const Inputs& i) { return max(i[0], 1).values; }, {x({3, 4})}},
      {"min", [](const Inputs& i) { return min(i[0], 0, true).values; }, {x({3, 4})}},
      {"sum_to",
       [](const Inputs& i) {
         return sum_to(i[0], {1, 3});
       },
       {x({2, 4, 3})}},
      {"matmul", [](const Inputs& i) { return matmul(i[0], i[1]); }, {x({2, 3}), x({3, 4}, 2)}},
      {"matmul batch", [](const Inputs& i) { return matmul(i[0], i[1]); }, {x({2, 1, 2, 3}), x({4, 3, 2}, 2)}},
      {"matmul vectors", [](const Inputs& i) { return matmul(i[0], i[1]); }, {x({3}), x({3}, 2)}},
      {"matmul matrix vector", [](const Inputs& i) { return matmul(i[0], i[1]); }, {x({2, 3}), x({3}, 2)}},
      {"matmul vector batch", [](const Inputs& i) { return matmul(i[0], i[1]); }, {x({3}), x({2, 3, 2}, 2)}},
      {"matmul transposed", [](const Inputs& i) { return matmul(i[0].t(), i[1].t()); }, {x({3, 2}), x({4, 3}, 2)}},
      {"matmul itself", [](const Inputs& i) { return matmul(i[0], i[0]); }, {x({3, 3})}},
      {"mm", [](const Inputs& i) { return mm(i[0], i[1]); }, {x({2, 3}), x({3, 2}, 2)}},
      {"bmm", [](const Inputs& i) { return bmm(i[0], i[1]); }, {x({2, 2, 3}), x({2, 3, 2}, 2)}},
      {"linear", [](const Inputs& i) { return linear(i[0], i[1], i[2]); }, {x({2, 2, 3}), x({4, 3}, 2), x({4}, 3)}},
      {"linear without bias", [](const Inputs& i) { return linear(i[0], i[1]); }, {x({3}), x({4, 3}, 2)}},
      {"linear_relu",
       [](const Inputs& i) { return linear_relu(i[0], i[1], i[2]); },
       {x({2, 2, 3}), x({4, 3}, 2), x({4}, 3)}},
      {"linear_relu without bias", [](const Inputs& i) { return linear_relu(i[0], i[1]); }, {x({3}), x({4, 3}, 2)}},
      {"linear_gelu",
       [](const Inputs& i) { return linear_gelu(i[0], i[1], i[2]); },
       {x({2, 2, 3}), x({4, 3}, 2), x({4}, 3)},
       {.roundings = 2}},  // a sum, and a function of it
      {"linear_gelu without bias",
       [](const Inputs& i) { return linear_gelu(i[0], i[1]); },
       {x({3}), x({4, 3}, 2)},
       {.roundings = 2}},
      {"relu", [](const Inputs& i) { return relu(i[0]); }, {x({7})}},
      {"leaky_relu", [](const Inputs& i) { return leaky_relu(i[0], 0.2); }, {x({7})}},
      {"gelu", [](const Inputs& i) { return gelu(i[0]); }, {x({7})}},
      {"gelu tanh", [](const Inputs& i) { return gelu(i[0], GeluApproximation::Tanh); }, {x({7})}},
      {"tanh", [](const Inputs& i) { return brigade::tanh(i[0]); }, {x({7})}},
      {"sigmoid", [](const Inputs& i) { return sigmoid(i[0]); }, {x({7})}},
      {"silu", [](const Inputs& i) { return silu(i[0]); }, {x({7})}},
      {"softmax", [](const Inputs& i) { return softmax(i[0], -1); }, {x({2, 5})}},
      {"softmax inner", [](const Inputs& i) { return softmax(i[0], 1); }, {x({2, 3, 2})}},
      {"log_softmax", [](const Inputs& i) { return log_softmax(i[0], 0); }, {x({4, 2})}},
      {"scaled_dot_product_attention",
       [](const Inputs& i) { return scaled_dot_product_attention(i[0], i[1], i[2]) * i[3]; },
       {x({2, 3, 4}), x({2, 5, 4}, 2), x({2, 5, 2}, 3), fixed({2, 3, 2}, 1)},
       {.roundings = 2}},
      {"scaled_dot_product_attention causal",
       [](const Inputs& i) { return scaled_dot_product_attention(i[0], i[1].transpose(0, 1), i[2], {}, 0, true, 0.7); },
       {x({2, 5, 4}), x({4, 2, 4}, 2), x({2, 4, 4}, 3)},
       {.roundings = 2}},
      {"scaled_dot_product_attention bool mask",
       [](const Inputs& i) { return scaled_dot_product_attention(i[0], i[1], i[2], i[3]); },
       {x({2, 3, 4}), x({2, 5, 4}, 2), x({2, 5, 4}, 3), gt(fixed({3, 5}, 6), 0.4)},
       {.roundings = 2}},
      {"scaled_dot_product_attention added mask",
       [](const Inputs& i) { return scaled_dot_product_attention(i[0], i[1], i[2], i[3]); },
       {x({2, 3, 4}), x({2, 5, 4}, 2), x({2, 5, 4}, 3), fixed({2, 1, 5}, 6)},
       {.roundings = 2}},
      {"scaled_dot_product_attention dropout",
       [](const Inputs& i) {
         default_generator().manual_seed(3);
         return scaled_dot_product_attention(i[0], i[1], i[2], {}, 0.4);
       },
       {x({2, 3, 4}), x({2, 5, 4}, 2), x({2, 5, 4}, 3)},
       {.roundings = 2}},
      {"scaled_dot_product_attention itself",
       [](const Inputs& i) { return scaled_dot_product_attention(i[0], i[0], i[0]); },
       {x({3, 4})},
       {.roundings = 2}},
      {"embedding", [](const Inputs& i) { return embedding(i[1], i[0]); }, {x({4, 3}), classes}},
      {"embedding dense", [](const Inputs& i) { return embedding(i[1], i[0]); }, {x({3, 2}), dense}},
      {"cross_entropy", [](const Inputs& i) { return cross_entropy(i[0], i[1]); }, {x({4, 3}), classes}},
      {"cross_entropy ignored", [](const Inputs& i) { return cross_entropy(i[0], i[1]); }, {x({4, 3}), ignored}},
      {"cross_entropy none",
       [](const Inputs& i) { return cross_entropy(i[0], i[1], Reduction::None); },
       {x({4, 3}), classes}},
      {"cross_entropy dense",
       [](const Inputs& i) { return cross_entropy(i[0], i[1], Reduction::Sum); },
       {x({2, 3, 2, 2}), dense}},
      {"binary_cross_entropy_with_logits",
       [](const Inputs& i) { return binary_cross_entropy_with_logits(i[0], i[1]); },
       {x({5}), x({5}, 2, true)}},
      {"binary_cross_entropy_with_logits none",
       [](const Inputs& i) { return binary_cross_entropy_with_logits(i[0], i[1], Reduction::None); },
       {x({5}), fixed({5}, 3)}},
      {"mse_loss", [](const Inputs& i) { return mse_loss(i[0], i[1]); }, {x({2, 3}), x({2, 3}, 2)}},
      {"mse_loss sum",
       [](const Inputs& i) { return mse_loss(i[0], i[1], Reduction::Sum); },
       {x({2, 3}), fixed({2, 3}, 3)}},
      {"l1_loss", [](const Inputs& i) { return l1_loss(i[0], i[1]); }, {x({2, 3}), x({2, 3}, 2)}},
      {"conv2d",
       [](const Inputs& i) { return conv2d(i[0], i[1], i[2]); },
       {x({2, 2, 4, 5}), x({3, 2, 3, 2}, 2), x({3}, 3)}},
      {"conv2d strided",
       [](const Inputs& i) {
         return conv2d(i[0], i[1], {}, {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}});
       },
       {x({1, 2, 5, 5}), x({2, 2, 3, 2}, 2)}},
      {"conv2d groups",
       [](const Inputs& i) { return conv2d(i[0], i[1], i[2], {.groups = 2}); },
       {x({2, 4, 3, 3}), x({2, 2, 2, 2}, 2), x({2}, 3)}},
      {"max_pool2d",
       [](const Inputs& i) {
         return max_pool2d(i[0], {{2, 3}, {1, 2}, {1, 1}});
       },
       {x({2, 2, 4, 5})}},
      {"avg_pool2d",
       [](const Inputs& i) {
         return avg_pool2d(i[0], {{2, 3}, {1, 2}, {1, 1}, true, false});
       },
       {x({2, 2, 4, 5})}},
      {"interpolate nearest",
       [](const Inputs& i) {
         return interpolate(i[0], {.size = {{5, 2}}});
       },
       {x({2, 2, 3, 4})}},
      {"interpolate bilinear",
       [](const Inputs& i) {
         return interpolate(i[0], {.scale_factor = {{2.3, 0.7}}, .mode = InterpolateMode::Bilinear});
       },
       {x({2, 1, 3, 4})}},
      {"interpolate aligned",
       [](const Inputs& i) {
         return interpolate(i[0], {.size = {{1, 7}}, .mode = InterpolateMode::Bilinear, .align_corners = true});
       },
       {x({1, 2, 4, 3})}},
      {"batch_norm",
       [](const Inputs& i) { return batch_norm(i[0], i[1], i[2], {}, {}, true); },
       {x({3, 2, 2, 2}), x({2}, 2), x({2}, 3)},
       {.roundings = 2, .contiguous_from = 1, .why_contiguous = "parameters and statistics of channels are"}},
      {"batch_norm eval",
       [](const Inputs& i) { return batch_norm(i[0], i[1], i[2], i[3], i[4], false); },
       {x({3, 2, 2}), x({2}, 2), x({2}, 3), fixed({2}, 4), fixed({2}, 5) + 0.5},
       {.roundings = 2, .contiguous_from = 1, .why_contiguous = "parameters and statistics of channels are"}},
      {"layer_norm",
       [](const Inputs& i) { return layer_norm(i[0], {4}, i[1], i[2], 1e-3) * i[3]; },
       {x({2, 3, 4}), x({4}, 2), x({4}, 3), fixed({2, 3, 4}, 4)},
       {.roundings = 4}},
      {"layer_norm over two dimensions, plain",
       [](const Inputs& i) {
         return layer_norm(i[0], {3, 4}) * i[1];
       },
       {x({2, 3, 4}), fixed({2, 3, 4}, 4)},
       {.roundings = 4}},
      {"rms_norm",
       [](const Inputs& i) { return rms_norm(i[0], {4}, i[1], 1e-3) * i[2]; },
       {x({3, 4}), x({4}, 2), fixed({3, 4}, 4)}},
      {"rms_norm plain",
       [](const Inputs& i) {
         return rms_norm(i[0], {2, 2}) * i[1];
       },
       {x({3, 2, 2}), fixed({3, 2, 2}, 4)}},
      {"dropout",
       [](const Inputs& i) {
         default_generator().manual_seed(3);
         return dropout(i[0], 0.4);
       },
       {x({20})}},
      {"reshape",
       [](const Inputs& i) {
         return i[0].t().reshape({2, 3}) * i[1];
       },
       {x({2, 3}), fixed({2, 3}, 1)}},
      {"view",
       [](const Inputs& i) {
         return i[0].view({3, -1}) * i[1];
       },
       {x({2, 3}), fixed({3, 2}, 1)},
       {.contiguous_from = 0, .why_contiguous = "what has other strides is for reshape"}},
      {"flatten", [](const Inputs& i) { return i[0].flatten(1) * i[1]; }, {x({2, 3, 2}), fixed({2, 6}, 1)}},
      {"permute",
       [](const Inputs& i) {
         return i[0].permute({2, 0, 1}) * i[1];
       },
       {x({2, 3, 4}), fixed({4, 2, 3}, 1)}},
      {"transpose", [](const Inputs& i) { return i[0].transpose(0, 2) * i[1]; }, {x({2, 3, 4}), fixed({4, 3, 2}, 1)}},
      {"expand",
       [](const Inputs& i) {
         return i[0].expand({4, 2, 3}) * i[1];
       },
       {x({2, 1}), fixed({4, 2, 3}, 1)}},
      {"unsqueeze", [](const Inputs& i) { return i[0].unsqueeze(1) * i[1]; }, {x({2, 3}), fixed({2, 1, 3}, 1)}},
      {"squeeze", [](const Inputs& i) { return i[0].squeeze(1) * i[1]; }, {x({2, 1, 3}), fixed({2, 3}, 1)}},
      {"slice", [](const Inputs& i) { return i[0].slice(1, 1, 6, 2) * i[1]; }, {x({2, 7}), fixed({2, 3}, 1)}},
      {"select", [](const Inputs& i) { return i[0].select(0, -1) * i[1]; }, {x({2, 3}), fixed({3}, 1)}},
      {"clone", [](const Inputs& i) { return i[0].t().contiguous() * i[1]; }, {x({2, 3}), fixed({3, 2}, 1)}},
      {"to", [](const Inputs& i) { return i[0].to(kFloat64) * 2.0; }, {x({3})}},
      {"to another dtype",
       [](const Inputs& i) { return i[0].to(i[0].dtype() == kFloat32 ? kFloat64 : kFloat32) * 2.0; },
       {x({3})},
       {.central_differences = false}},
      {"to the CPU",
       [](const Inputs& i) { return (i[0] * 2.0).cpu() * 2.0; },
       {x({3})},
       {.central_differences = false}},
      {"cat",
       [](const Inputs& i) {
         return cat({i[0], i[1]}, 1) * i[2];
       },
       {x({2, 3}), x({2, 2}, 2), fixed({2, 5}, 1)}},
      {"stack",
       [](const Inputs& i) {
         return stack({i[0], i[1], i[0]}, 1) * i[2];
       },
       {x({2, 3}), x({2, 3}, 2), fixed({2, 3, 3}, 1)}},
      {"split",
       [](const Inputs& i) { return split(i[0], 2, 1)[1] * split(i[0], 2, 1)[0].slice(1, 0, 1); },
       {x({2, 3})}},
      {"chunk", [](const Inputs& i) { return chunk(i[0], 2)[1] * 3.0; }, {x({4, 2})}},
      {"index_select",
       [](const Inputs& i) { return index_select(i[0], 0, i[1]) * i[2]; },
       {x({3, 2}), tensor<int64_t>({1, 1, 0}), fixed({3, 2}, 1)}},
      {"index_select inner",
       [](const Inputs& i) { return index_select(i[0], 1, i[1]) * i[2]; },
       {x({3, 3}), tensor<int64_t>({2, 0}), fixed({3, 2}, 1)}},
      {"add_", [](const Inputs& i) { return (i[0] * 1.0).add_(i[1], 0.5) * 2.0; }, {x({2, 3}), x({3}, 2)}},
      {"mul_", [](const Inputs& i) { return (i[0] * 1.0).mul_(i[1]) * 2.0; }, {x({2, 3}), x({3}, 2)}},
      {"mul_ number", [](const Inputs& i) { return (i[0] * 1.0).mul_(-1.5); }, {x({3})}},
      {"copy_", [](const Inputs& i) { return (i[0] * 1.0).copy_(i[1]) * i[0]; }, {x({2, 3}), x({3}, 2)}},
      {"fill_", [](const Inputs& i) { return (i[0] * 1.0).fill_(2) * i[0]; }, {x({3})}},
  };
}

}  // namespace brigade::test
