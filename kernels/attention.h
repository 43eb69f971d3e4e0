// Scaled dot-product attention: softmax(q k^T * scale + mask) v, computed in tiles, so that the full score matrix is
// never materialized.
//
// Source: Dao, Fu, Ermon, Rudra, Re, "FlashAttention", arXiv 2205.14135; Dao, "FlashAttention-2", arXiv 2307.08691. A
// query walks over the keys tile by tile and keeps the largest score so far, the sum of exp(score - largest), and the
// weighted sum of the values; when a tile has a larger score, both sums are scaled by exp(old - new). Only the
// logsumexp of each row is saved for backward, which recomputes any tile of probabilities from it.
#pragma once

#include <brigade/core/random.h>
#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// The maximum number of operand dimensions. The autograd operation merges leading dimensions of tensors with more.
inline constexpr int kMaxAttentionDims = 8;

struct AttentionOptions {
  // Broadcasts to the scores' shape [..., queries, keys]. Bool: true where a key takes part. Floating (the dtype of q,
  // or float32): added to the scores. Undefined: none.
  Tensor mask = {};
  // Query i sees the keys 0 .. i. Not together with a mask.
  bool is_causal = false;
  double scale = 1;
  // Applied to the probabilities after softmax, with the mask that kernels/activation.h makes for a contiguous [...,
  // queries, keys].
  double dropout_p = 0;
  PhiloxState state = {};
  // Key and value may have fewer heads (the third dimension from the end) than the query; adjacent query heads share
  // one: query head h reads key head h / (query heads / key heads).
  bool enable_gqa = false;
};

struct Attention {
  Tensor out;        // [..., queries, value width], of the dtype of q
  Tensor logsumexp;  // [..., queries] of the scores; float32, or float64 for float64
};

// q [..., queries, width], k [..., keys, width], v [..., keys, value width]: one floating dtype, equal leading
// dimensions (except the heads with enable_gqa); any strides, but rows that are not dense are copied. A fully masked
// row gives zeros (and a logsumexp of -inf), as in PyTorch. CUDA: widths up to 256. Throws ShapeError, DTypeError,
// DeviceError, ValueError.
extern Kernel<Attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options)> attention;

// The wanted gradients of q, k, v and a floating mask; the others are undefined. The gradient of the mask is summed
// over the dimensions that the mask was broadcast to; computing it takes as much memory as the full score matrix.
struct AttentionGradients {
  Tensor q, k, v, mask = {};
};
struct AttentionWanted {
  bool q = true, k = true, v = true, mask = false;
};
// `result`: the result of attention() for the same arguments. Bitwise deterministic: no sum depends on timing. Throws
// ShapeError when the gradient does not have the shape and dtype of the result.
extern Kernel<AttentionGradients(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                                 const Attention& result, const AttentionOptions& options, AttentionWanted wanted)>
    attention_backward;

}  // namespace brigade::kernels
