// An encoder layer with its norms before or after each part, and the encoder, a stack of layers.
#include <brigade/nn/transformer.h>

#include <brigade/autograd/ops/activation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/nn/detail/options.h>

namespace brigade::nn {

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead,
                                                         const TransformerEncoderLayerOptions& o)
    : TransformerEncoderLayerImpl(detail::with_sizes<TransformerEncoderLayerOptions>(
          o, "TransformerEncoderLayer",
          {{"d_model", &TransformerEncoderLayerOptions::d_model, d_model},
           {"nhead", &TransformerEncoderLayerOptions::nhead, nhead}})) {}

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(const TransformerEncoderLayerOptions& o) : options(o) {
  if (o.dim_feedforward < 1)
    throw ValueError("TransformerEncoderLayer: dim_feedforward must be at least 1, got " +
                     std::to_string(o.dim_feedforward));
  self_attn = register_module("self_attn", MultiheadAttention({.embed_dim = o.d_model,
                                                               .num_heads = o.nhead,
                                                               .dropout = o.dropout,
                                                               .bias = o.bias,
                                                               .batch_first = o.batch_first,
                                                               .dtype = o.dtype}));
  const auto linear = [&](int64_t in, int64_t out) {
    return Linear({.in_features = in, .out_features = out, .bias = o.bias, .dtype = o.dtype});
  };
  const LayerNormOptions norm{.eps = o.layer_norm_eps, .bias = o.bias, .dtype = o.dtype};
  linear1 = register_module("linear1", linear(o.d_model, o.dim_feedforward));
  dropout = register_module("dropout", Dropout(o.dropout));
  linear2 = register_module("linear2", linear(o.dim_feedforward, o.d_model));
  norm1 = register_module("norm1", LayerNorm(o.d_model, norm));
  norm2 = register_module("norm2", LayerNorm(o.d_model, norm));
  dropout1 = register_module("dropout1", Dropout(o.dropout));
  dropout2 = register_module("dropout2", Dropout(o.dropout));
}

Tensor TransformerEncoderLayerImpl::attend(const Tensor& x, const TransformerMasks& masks, SourceLocation where) {
  const AttentionMasks of_attention{.key_padding_mask = masks.src_key_padding_mask,
                                    .need_weights = false,
                                    .attn_mask = masks.src_mask,
                                    .is_causal = masks.is_causal};
  return dropout1(self_attn(x, x, x, of_attention, where).output, where);
}

Tensor TransformerEncoderLayerImpl::feed_forward(const Tensor& x, SourceLocation where) {
  const Tensor inner = linear1(x, where);
  const Tensor active = options.activation == TransformerActivation::ReLU ? relu(inner, where)
                                                                          : gelu(inner, GeluApproximation::None, where);
  return dropout2(linear2(dropout(active, where), where), where);
}

Tensor TransformerEncoderLayerImpl::forward(const Tensor& src, const TransformerMasks& masks, SourceLocation where) {
  const CallScope scope(*this, where);
  if (options.norm_first) {
    const Tensor x = add(src, attend(norm1(src, where), masks, where), where);
    return add(x, feed_forward(norm2(x, where), where), where);
  }
  const Tensor x = norm1(add(src, attend(src, masks, where), where), where);
  return norm2(add(x, feed_forward(x, where), where), where);
}

TransformerEncoderImpl::TransformerEncoderImpl(const TransformerEncoderLayerOptions& layer, int64_t num_layers,
                                               bool final_norm) {
  if (num_layers < 1)
    throw ValueError("TransformerEncoder: num_layers must be at least 1, got " + std::to_string(num_layers));
  layers = register_module("layers", ModuleList<TransformerEncoderLayer>());
  for (int64_t i = 0; i < num_layers; ++i) {
    layers->push_back(TransformerEncoderLayer(layer));
    if (i > 0) (*layers)[static_cast<size_t>(i)]->load_state_dict((*layers)[0]->state_dict());
  }
  if (final_norm) {
    norm = register_module(
        "norm", LayerNorm(layer.d_model, {.eps = layer.layer_norm_eps, .bias = layer.bias, .dtype = layer.dtype}));
  }
}

Tensor TransformerEncoderImpl::forward(const Tensor& src, const TransformerMasks& masks, SourceLocation where) {
  const CallScope scope(*this, where);
  Tensor x = src;
  for (TransformerEncoderLayer& layer : *layers)
    x = layer(x, masks, where);
  return norm ? norm(x, where) : x;
}

}  // namespace brigade::nn
