// Multi-head attention (Vaswani et al., "Attention Is All You Need", arXiv 1706.03762), with
// PyTorch's parameters.
#pragma once

#include <brigade/nn/linear.h>

#include <optional>

namespace brigade::nn {

struct MultiheadAttentionOptions {
  int64_t embed_dim = 0;  // of the queries and the result; split evenly among the heads
  int64_t num_heads = 0;
  double dropout = 0;  // of the weights, in training
  bool bias = true;
  std::optional<int64_t> kdim = std::nullopt;  // of the keys: embed_dim by default
  std::optional<int64_t> vdim = std::nullopt;  // of the values: embed_dim by default
  bool batch_first = false;                    // [batch, length, width] instead of [length, batch, width]
  DType dtype = DType::Float32;
};

// Masks as in PyTorch: bool, where true means that a key does NOT count, or floating and added to the scores.
// (scaled_dot_product_attention has the opposite convention.)
struct AttentionMasks {
  Tensor key_padding_mask;           // [batch, keys], or [keys] without a batch
  bool need_weights = true;          // false is faster: no weight matrix is computed
  Tensor attn_mask;                  // [queries, keys] or [batch * num_heads, queries, keys]
  bool average_attn_weights = true;  // over the heads
  bool is_causal = false;            // query i sees the keys 0 .. i, in addition to the masks
};

struct AttentionResult {
  Tensor output;   // like the query
  Tensor weights;  // [batch, queries, keys], or [batch, num_heads, queries, keys] not averaged; undefined if not needed
};

// query [queries, batch, embed_dim], key [keys, batch, kdim], value [keys, batch, vdim]; all without a batch, or with
// the batch first. Parameters: in_proj_weight [3 embed_dim, embed_dim] (or q_proj_weight, k_proj_weight, v_proj_weight
// if kdim or vdim differ), Xavier uniform; in_proj_bias, 0; out_proj, a Linear with a bias of 0. Throws ValueError if
// num_heads does not divide embed_dim; forward throws ShapeError and DTypeError for inputs that do not fit. A query
// whose keys are all masked gives NaN if weights are computed, as in PyTorch, and the bias of out_proj if not.
struct MultiheadAttentionImpl : Module {
  using Options = MultiheadAttentionOptions;
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads, const MultiheadAttentionOptions& options = {});
  explicit MultiheadAttentionImpl(const MultiheadAttentionOptions& options);
  AttentionResult forward(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMasks& masks,
                          SourceLocation where = SourceLocation::current());
  AttentionResult forward(const Tensor& query, const Tensor& key, const Tensor& value,
                          SourceLocation where = SourceLocation::current()) {
    return forward(query, key, value, AttentionMasks{}, where);
  }

  MultiheadAttentionOptions options;
  Tensor in_proj_weight, in_proj_bias;                 // undefined if not used
  Tensor q_proj_weight, k_proj_weight, v_proj_weight;  // instead of in_proj_weight
  Linear out_proj{nullptr};

 protected:
  std::string extra() const override;
};

//   nn::MultiheadAttention attention(64, 8, {.dropout = 0.1});
//   auto [y, weights] = attention(x, x, x, nn::AttentionMasks{.need_weights = false, .is_causal = true});
BRIGADE_MODULE(MultiheadAttention);

}  // namespace brigade::nn
