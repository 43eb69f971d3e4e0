// The operations of autograd/ops/*.h that LibTorch programs call in torch::nn::functional:
//
//   namespace F = brigade::nn::functional;
//   loss = F::cross_entropy(F::relu(fc(x)), labels);
//
// Options are passed as structs in braces: F::cross_entropy(x, y, {.label_smoothing = 0.1}).
#pragma once

#include <brigade/autograd/functional.h>

namespace brigade::nn::functional {

using brigade::adaptive_avg_pool1d;
using brigade::adaptive_avg_pool2d;
using brigade::adaptive_max_pool1d;
using brigade::adaptive_max_pool2d;
using brigade::avg_pool1d;
using brigade::avg_pool2d;
using brigade::batch_norm;
using brigade::bilinear;
using brigade::binary_cross_entropy;
using brigade::binary_cross_entropy_with_logits;
using brigade::celu;
using brigade::conv1d;
using brigade::conv2d;
using brigade::conv_transpose1d;
using brigade::conv_transpose2d;
using brigade::cosine_embedding_loss;
using brigade::cosine_similarity;
using brigade::cross_entropy;
using brigade::dropout;
using brigade::elu;
using brigade::embedding;
using brigade::fold;
using brigade::gaussian_nll_loss;
using brigade::gelu;
using brigade::glu;
using brigade::group_norm;
using brigade::hardshrink;
using brigade::hardsigmoid;
using brigade::hardswish;
using brigade::hardtanh;
using brigade::hinge_embedding_loss;
using brigade::huber_loss;
using brigade::instance_norm;
using brigade::interpolate;
using brigade::kl_div;
using brigade::l1_loss;
using brigade::layer_norm;
using brigade::leaky_relu;
using brigade::linear;
using brigade::log_softmax;
using brigade::logsigmoid;
using brigade::margin_ranking_loss;
using brigade::max_pool1d;
using brigade::max_pool2d;
using brigade::mish;
using brigade::mse_loss;
using brigade::nll_loss;
using brigade::normalize;
using brigade::one_hot;
using brigade::pad;
using brigade::pixel_shuffle;
using brigade::pixel_unshuffle;
using brigade::poisson_nll_loss;
using brigade::prelu;
using brigade::relu;
using brigade::relu6;
using brigade::rms_norm;
using brigade::scaled_dot_product_attention;
using brigade::selu;
using brigade::sigmoid;
using brigade::silu;
using brigade::smooth_l1_loss;
using brigade::soft_margin_loss;
using brigade::softmax;
using brigade::softmin;
using brigade::softplus;
using brigade::softshrink;
using brigade::softsign;
using brigade::tanh;
using brigade::triplet_margin_loss;
using brigade::unfold;

}  // namespace brigade::nn::functional
