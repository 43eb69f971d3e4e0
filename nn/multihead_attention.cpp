// Projects queries, keys and values, joins the masks, attends in each head, projects the result.
#include <brigade/nn/multihead_attention.h>

#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/detail/options.h>
#include <brigade/nn/init.h>

#include <cmath>

namespace brigade::nn {

MultiheadAttentionImpl::MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads, const MultiheadAttentionOptions& o)
    : MultiheadAttentionImpl(detail::with_sizes<MultiheadAttentionOptions>(
          o, "MultiheadAttention",
          {{"embed_dim", &MultiheadAttentionOptions::embed_dim, embed_dim},
           {"num_heads", &MultiheadAttentionOptions::num_heads, num_heads}})) {}

MultiheadAttentionImpl::MultiheadAttentionImpl(const MultiheadAttentionOptions& o) : options(o) {
  if (o.embed_dim < 1 || o.num_heads < 1) {
    throw ValueError("embed_dim and num_heads must be greater than 0, got embed_dim=" + std::to_string(o.embed_dim) +
                     " and num_heads=" + std::to_string(o.num_heads) + " instead");
  }
  if (o.embed_dim % o.num_heads != 0) {
    throw ValueError("embed_dim must be divisible by num_heads, got " + std::to_string(o.embed_dim) + " and " +
                     std::to_string(o.num_heads));
  }
  if (!(o.dropout >= 0 && o.dropout <= 1))
    throw ValueError("dropout probability has to be between 0 and 1, but got " + detail::text_of(o.dropout));
  const int64_t width = o.embed_dim;
  const int64_t key_width = o.kdim.value_or(width), value_width = o.vdim.value_or(width);
  const auto weight = [&](const char* name, int64_t out, int64_t in) {
    const Tensor parameter = register_parameter(name, empty({out, in}, o.dtype));
    init::xavier_uniform_(parameter);
    return parameter;
  };
  if (key_width == width && value_width == width) {
    in_proj_weight = weight("in_proj_weight", 3 * width, width);
  } else {
    q_proj_weight = weight("q_proj_weight", width, width);
    k_proj_weight = weight("k_proj_weight", width, key_width);
    v_proj_weight = weight("v_proj_weight", width, value_width);
  }
  if (o.bias) in_proj_bias = register_parameter("in_proj_bias", zeros({3 * width}, o.dtype));
  out_proj = register_module("out_proj",
                             Linear({.in_features = width, .out_features = width, .bias = o.bias, .dtype = o.dtype}));
  if (o.bias) init::zeros_(out_proj->bias.detach());
}

namespace {

[[noreturn]] void throw_shape(const std::string& what, const std::string& expected, const Tensor& found,
                              SourceLocation where) {
  throw ShapeError("MultiheadAttention: expected " + what + " " + expected + ", got " + describe(found) + " (" +
                       to_string(where) + ")",
                   where);
}

// The bias added to the scores: 0 where a key counts, minus infinity where `mask` is true; a floating mask is
// returned as it is.
Tensor additive(const Tensor& mask, DType dtype, SourceLocation where) {
  if (mask.dtype() != kBool) return mask.to(dtype, where);
  return log(eq(mask, 0, where).to(dtype, where), where);
}

// The combined mask, which broadcasts to [batch, heads, queries, keys]; undefined if there is none.
struct Scores {
  int64_t batch, heads, queries, keys;
  Tensor mask;
  DType dtype;
  Device device;
  SourceLocation where;

  void add(const Tensor& more) { mask = mask.defined() ? brigade::add(mask, more, where) : more; }
  void add_padding(const Tensor& padding, bool batched) {
    const Shape expected = batched ? Shape{batch, keys} : Shape{keys};
    if (padding.sizes() != expected) throw_shape("a key_padding_mask", to_string(expected), padding, where);
    add(additive(padding, dtype, where).reshape({batch, 1, 1, keys}, where));
  }
  void add_mask(const Tensor& attn_mask) {
    const Shape flat{queries, keys}, deep{batch * heads, queries, keys};
    if (attn_mask.sizes() != flat && attn_mask.sizes() != deep)
      throw_shape("an attn_mask", to_string(flat) + " or " + to_string(deep), attn_mask, where);
    const Tensor more = additive(attn_mask, dtype, where);
    add(attn_mask.dim() == 2 ? more : more.reshape({batch, heads, queries, keys}, where));
  }
  void add_causal() {
    const Tensor row = arange(0, static_cast<double>(keys), 1, {kInt64, device});
    const Tensor column = arange(0, static_cast<double>(queries), 1, {kInt64, device}).reshape({queries, 1}, where);
    add(log(le(row, column, where).to(dtype, where), where));
  }
};

}  // namespace

AttentionResult MultiheadAttentionImpl::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                const AttentionMasks& masks, SourceLocation where) {
  const CallScope scope(*this, where);
  const bool batched = query.dim() == 3;
  if (query.dim() != 2 && query.dim() != 3) throw_shape("a query of 2 or 3 dimensions", "", query, where);
  const bool batch_first = options.batch_first || !batched;
  // Without a batch, adds one of size 1 as the first dimension.
  const auto with_batch = [&](const char* what, const Tensor& x, int64_t width) {
    if (x.dim() != query.dim() || x.size(-1) != width) {
      throw_shape(what, "of " + std::to_string(query.dim()) + " dimensions, the last of size " + std::to_string(width),
                  x, where);
    }
    return batched ? x : x.unsqueeze(0, where);
  };
  const int64_t width = options.embed_dim;
  const Tensor q = with_batch("a query", query, width);
  const Tensor k = key.is_same(query) ? q : with_batch("a key", key, options.kdim.value_or(width));
  const Tensor v = value.is_same(key) ? k : with_batch("a value", value, options.vdim.value_or(width));
  const int batch_dim = batch_first ? 0 : 1, length_dim = 1 - batch_dim;
  if (k.size(batch_dim) != q.size(batch_dim) || v.size(batch_dim) != q.size(batch_dim) ||
      v.size(length_dim) != k.size(length_dim)) {
    throw ShapeError(
        "MultiheadAttention: query, key and value must have one batch, and key and value one length, got " +
            describe(query) + ", " + describe(key) + " and " + describe(value) + " (" + to_string(where) + ")",
        where);
  }

  // Projections. Self-attention takes one product.
  std::vector<Tensor> projected;
  if (in_proj_weight.defined() && k.is_same(q) && v.is_same(q)) {
    projected = chunk(brigade::linear(q, in_proj_weight, in_proj_bias, where), 3, -1, where);
  } else {
    const Tensor* inputs[] = {&q, &k, &v};
    const Tensor* weights[] = {&q_proj_weight, &k_proj_weight, &v_proj_weight};
    for (int64_t i = 0; i < 3; ++i) {
      const Tensor weight = in_proj_weight.defined() ? in_proj_weight.narrow(0, i * width, width, where) : *weights[i];
      const Tensor bias = in_proj_bias.defined() ? in_proj_bias.narrow(0, i * width, width, where) : Tensor();
      projected.push_back(brigade::linear(*inputs[i], weight, bias, where));
    }
  }

  Scores scores{
      q.size(batch_dim), options.num_heads, q.size(length_dim), k.size(length_dim), {}, q.dtype(), q.device(), where};
  const int64_t per_head = width / scores.heads;
  const auto heads_of = [&](const Tensor& x) {
    return x.reshape({x.size(0), x.size(1), scores.heads, per_head}, where)
        .permute(batch_first ? Shape{0, 2, 1, 3} : Shape{1, 2, 0, 3}, where);
  };
  const Tensor heads_q = heads_of(projected[0]), heads_k = heads_of(projected[1]), heads_v = heads_of(projected[2]);
  if (masks.key_padding_mask.defined()) scores.add_padding(masks.key_padding_mask, batched);
  if (masks.attn_mask.defined()) scores.add_mask(masks.attn_mask);
  const bool causal_alone = masks.is_causal && !scores.mask.defined() && !masks.need_weights;
  if (masks.is_causal && !causal_alone) scores.add_causal();

  AttentionResult result;
  const double dropped = is_training() ? options.dropout : 0;
  Tensor mixed;
  if (masks.need_weights) {
    const Tensor scaled = mul(heads_q, 1 / std::sqrt(static_cast<double>(per_head)), where);
    Tensor score = matmul(scaled, heads_k.transpose(-2, -1, where), where);
    if (scores.mask.defined()) score = brigade::add(score, scores.mask, where);
    const Tensor weights = dropout(softmax(score, -1, where), dropped, is_training(), where);
    mixed = matmul(weights, heads_v, where);
    result.weights = masks.average_attn_weights ? weights.mean({1}, false, where) : weights;
    if (!batched) result.weights = result.weights.squeeze(0, where);
  } else {
    mixed =
        scaled_dot_product_attention(heads_q, heads_k, heads_v, scores.mask, dropped, causal_alone, {}, false, where);
  }
  Tensor joined = mixed.permute(batch_first ? Shape{0, 2, 1, 3} : Shape{2, 0, 1, 3}, where);
  joined = joined.reshape({joined.size(0), joined.size(1), width}, where);
  result.output = out_proj(joined, where);
  if (!batched) result.output = result.output.squeeze(0, where);
  return result;
}

std::string MultiheadAttentionImpl::extra() const {
  return "embed_dim=" + std::to_string(options.embed_dim) + ", num_heads=" + std::to_string(options.num_heads) +
         ", dropout=" + detail::text_of(options.dropout) + ", batch_first=" + detail::text_of(options.batch_first);
}

}  // namespace brigade::nn
