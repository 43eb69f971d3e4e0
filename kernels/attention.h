// Scaled dot-product attention: softmax(q k^T * scale + mask) v, in tiles, so that the matrix of
// scores is never in memory as a whole.
//
// Source: Dao, Fu, Ermon, Rudra, Re, "FlashAttention", arXiv 2205.14135; Dao, "FlashAttention-2",
// arXiv 2307.08691. A query walks over the keys tile by tile and keeps the largest score so far,
// the sum of exp(score - largest), and the values weighted likewise; when a tile brings a larger
// score, sum and values shrink by exp(old - new). All that is kept for backward is the logarithm of
// the sum of exponentials of each row, from which any tile of probabilities can be made again.
#pragma once

#include <brigade/core/random.h>
#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// The most dimensions that the operands may have; the operation of autograd merges leading ones of tensors with more.
inline constexpr int kMaxAttentionDims = 8;

struct AttentionOptions {
  // Broadcasts to the scores' shape [..., queries, keys]. Bool: true where a key counts. Floating
  // (the dtype of q, or float32): added to the scores. Undefined: none.
  Tensor mask = {};
  // Query i sees the keys 0 .. i. Not together with a mask.
  bool is_causal = false;
  double scale = 1;
  // Of the probabilities, after softmax, with the mask of kernels/dropout.h for a contiguous [...,
  // queries, keys].
  double dropout_p = 0;
  PhiloxState state = {};
  // Key and value may have fewer heads (the third dimension from the end) than the query, of which
  // neighbours share one: query head h reads key head h / (query heads / key heads).
  bool enable_gqa = false;
};

struct Attention {
  Tensor out;        // [..., queries, value width], of the dtype of q
  Tensor logsumexp;  // [..., queries] of the scores; float32, or float64 for float64
};

// q [..., queries, width], k [..., keys, width], v [..., keys, value width]: one floating dtype,
// equal leading dimensions (but for heads with enable_gqa); any strides, but rows that are not dense
// are copied. A row without a key that counts gives zeros (and a logsumexp of -inf), as in PyTorch. CUDA: widths up to 256.
// Throws ShapeError, DTypeError, DeviceError, ValueError.
extern Kernel<Attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options)> attention;

// Gradients of q, k, v and a floating mask, those that are wanted; the others are undefined. That of
// the mask is summed over what the mask was broadcast to; while it is computed, it takes the room of
// the whole matrix of scores.
struct AttentionGradients {
  Tensor q, k, v, mask = {};
};
struct AttentionWanted {
  bool q = true, k = true, v = true, mask = false;
};
// `result`: what attention() gave for the same arguments. The same bits each time: nothing is added
// up in an order that depends on timing. Throws ShapeError when the gradient does not have the
// shape and dtype of the result.
extern Kernel<AttentionGradients(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                                 const Attention& result, const AttentionOptions& options, AttentionWanted wanted)>
    attention_backward;

}  // namespace brigade::kernels
