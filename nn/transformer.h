// Layers of the transformer's encoder (Vaswani et al., arXiv 1706.03762), with PyTorch's
// parameters.
#pragma once

#include <brigade/nn/activation.h>
#include <brigade/nn/container.h>
#include <brigade/nn/layer_norm.h>
#include <brigade/nn/multihead_attention.h>

namespace brigade::nn {

enum class TransformerActivation : uint8_t { ReLU, GELU };

struct TransformerEncoderLayerOptions {
  int64_t d_model = 0;
  int64_t nhead = 0;
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  TransformerActivation activation = TransformerActivation::ReLU;
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;  // normalize before attention and feed-forward, instead of after the sums
  bool bias = true;
  DType dtype = DType::Float32;
};

// Masks as for MultiheadAttention: true means that a key does not count.
struct TransformerMasks {
  Tensor src_mask, src_key_padding_mask;
  bool is_causal = false;
};

// x + attention, x + feed-forward, each with a LayerNorm and a Dropout. [length, batch, d_model]
// (or the batch first, or no batch) -> the same. Children: self_attn, linear1, dropout, linear2,
// norm1, norm2, dropout1, dropout2.
struct TransformerEncoderLayerImpl : Module {
  using Options = TransformerEncoderLayerOptions;
  TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead, const TransformerEncoderLayerOptions& options = {});
  explicit TransformerEncoderLayerImpl(const TransformerEncoderLayerOptions& options);
  Tensor forward(const Tensor& src, const TransformerMasks& masks, SourceLocation where = SourceLocation::current());
  Tensor forward(const Tensor& src, SourceLocation where = SourceLocation::current()) {
    return forward(src, TransformerMasks{}, where);
  }

  TransformerEncoderLayerOptions options;
  MultiheadAttention self_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr};
  Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr};

 private:
  Tensor attend(const Tensor& x, const TransformerMasks& masks, SourceLocation where);
  Tensor feed_forward(const Tensor& x, SourceLocation where);
};

//   nn::TransformerEncoderLayer layer(64, 8, {.batch_first = true});
BRIGADE_MODULE(TransformerEncoderLayer);

// `num_layers` layers one after another, which start with equal values, like PyTorch's copies of one layer; then a
// LayerNorm if `final_norm`. Children: layers, norm.
struct TransformerEncoderImpl : Module {
  TransformerEncoderImpl(const TransformerEncoderLayerOptions& layer, int64_t num_layers, bool final_norm = false);
  Tensor forward(const Tensor& src, const TransformerMasks& masks, SourceLocation where = SourceLocation::current());
  Tensor forward(const Tensor& src, SourceLocation where = SourceLocation::current()) {
    return forward(src, TransformerMasks{}, where);
  }

  ModuleList<TransformerEncoderLayer> layers{nullptr};
  LayerNorm norm{nullptr};  // an empty handle without final_norm
};
class TransformerEncoder : public ModuleHolder<TransformerEncoderImpl> {
 public:
  BRIGADE_HANDLE(TransformerEncoder, TransformerEncoderImpl)
  TransformerEncoder(const TransformerEncoderLayerOptions& layer, int64_t num_layers, bool final_norm = false,
                     SourceLocation where = SourceLocation::current())
      : ModuleHolder(std::make_shared<TransformerEncoderImpl>(layer, num_layers, final_norm), where) {}
};

}  // namespace brigade::nn
