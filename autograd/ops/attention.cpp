// The node of attention: backward by a kernel, or by operations on the full matrix of scores.
#include <brigade/autograd/ops/attention.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/activation.h>
#include <brigade/autograd/ops/matmul.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/ops/shape.h>
#include <brigade/autograd/record.h>
#include <brigade/core/view.h>
#include <brigade/kernels/activation.h>
#include <brigade/kernels/attention.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/reduce.h>

#include <cmath>
#include <limits>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;

// Keeps the logarithms of the rows' sums instead of probabilities, and the place in the random
// stream instead of a dropout mask.
struct AttentionNode final : autograd::Node {
  autograd::SavedTensor q, k, v, mask, out, logsumexp;
  kernels::AttentionOptions options;  // without the mask

  void backward(autograd::BackwardContext& context) override {
    if (context.create_graph()) return differentiable(context);
    const kernels::Attention result{out.unpack(*this), logsumexp.unpack(*this)};
    kernels::AttentionOptions with_mask = options;
    with_mask.mask = mask.unpack(*this);
    kernels::AttentionGradients gradients = kernels::attention_backward(
        context.grad(), q.unpack(*this), k.unpack(*this), v.unpack(*this), result, with_mask,
        {.q = context.needs_input_grad(0),
         .k = context.needs_input_grad(1),
         .v = context.needs_input_grad(2),
         .mask = has_mask_gradient(context)});
    context.set(0, std::move(gradients.q));
    context.set(1, std::move(gradients.k));
    context.set(2, std::move(gradients.v));
    if (gradients.mask.defined()) context.set(3, std::move(gradients.mask));
  }

 private:
  bool has_mask_gradient(const autograd::BackwardContext& context) const {
    return edges.size() > 3 && context.needs_input_grad(3);
  }
  // The same with the full matrix of probabilities; half types in float32, as in the kernels. For
  // out = P v with P = softmax(S), S = scale q k^T:
  //   dv = P^T g,  dP = g v^T,  dS = P (dP - sum(dP P)),  dq = scale dS k,  dk = scale dS^T q,  dmask = dS
  void differentiable(autograd::BackwardContext& context) {
    const Tensor query = q.unpack(*this);
    const DType dtype = query.dtype();
    const DType exact = dtype == kFloat64 ? kFloat64 : kFloat32;
    const Tensor left = query.to(exact, {});
    const Tensor key = k.unpack(*this);
    const Tensor value = v.unpack(*this);
    const Tensor right = for_each_head(key.to(exact, {}), query);
    const Tensor values = for_each_head(value.to(exact, {}), query);
    const Tensor grad = context.grad().to(exact, {});

    Tensor scores = matmul(left, right.transpose(-2, -1, {}), {}) * options.scale;
    const Visible visible = what_counts(scores.sizes(), exact, scores.device());
    if (visible.bias.defined()) scores = scores + visible.bias;
    Tensor probabilities = softmax(scores, -1, {});
    if (visible.alive.defined()) probabilities = probabilities * visible.alive;
    Tensor kept;  // dropout's factors
    if (options.dropout_p > 0)
      kept = kernels::dropout(ones(scores.sizes(), {exact, scores.device()}), options.dropout_p, options.state);
    const auto with_dropout = [&](const Tensor& x) { return kept.defined() ? x * kept : x; };

    if (context.needs_input_grad(2)) {
      const Tensor weights = with_dropout(probabilities);
      context.set(2, for_own_heads(matmul(weights.transpose(-2, -1, {}), grad, {}), value).to(dtype, {}));
    }
    if (!context.needs_input_grad(0) && !context.needs_input_grad(1) && !has_mask_gradient(context)) return;
    const Tensor slope = with_dropout(matmul(grad, values.transpose(-2, -1, {}), {}));
    const Tensor dot = sum_over(slope * probabilities, {-1});
    const Tensor mask_slope = probabilities * (slope - dot);
    if (has_mask_gradient(context)) {
      const Tensor given = mask.unpack(*this);
      context.set(3, brigade::sum_to(mask_slope, given.sizes(), {}).to(given.dtype(), {}));
    }
    const Tensor scores_slope = mask_slope * options.scale;
    if (context.needs_input_grad(0)) context.set(0, matmul(scores_slope, right, {}).to(dtype, {}));
    if (context.needs_input_grad(1))
      context.set(1, for_own_heads(matmul(scores_slope.transpose(-2, -1, {}), left, {}), key).to(dtype, {}));
  }

  // Repeats the shared heads of x, so that each query head has its own; for_own_heads sums the gradient of such a
  // tensor.
  static Tensor for_each_head(const Tensor& x, const Tensor& query) {
    if (query.dim() < 3 || x.size(-3) == query.size(-3)) return x;
    return repeat_interleave(x, query.size(-3) / x.size(-3), x.dim() - 3, {});
  }
  static Tensor for_own_heads(const Tensor& gradient, const Tensor& x) {
    if (x.sizes() == gradient.sizes()) return gradient;
    const int64_t matrix = x.size(-2) * x.size(-1);
    const int64_t group = gradient.size(-3) / x.size(-3);
    const int64_t heads = matrix == 0 ? 0 : x.numel() / matrix;
    return sum_over(gradient.reshape({heads, group, matrix}, {}), {1}).reshape(x.sizes(), {});
  }

  // The bias added to the scores: -inf where a key is masked. A fully masked row would give NaN: it gets no such bias,
  // and its probabilities are multiplied by 0 (`alive`) instead. Undefined if no key is masked.
  struct Visible {
    Tensor bias, alive;
  };
  Visible what_counts(const Shape& sizes, DType dtype, Device device) {
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    const Tensor given = mask.unpack(*this);
    Tensor bias = given;
    if (options.is_causal) {
      const int64_t queries = sizes[sizes.size() - 2];
      const int64_t keys = sizes.back();
      const Tensor i = arange(0, static_cast<double>(queries), 1, {kInt64, device});
      const Tensor j = arange(0, static_cast<double>(keys), 1, {kInt64, device});
      bias = kernels::compare(view::unsqueeze(i, 1), j, kernels::CompareOp::GreaterEqual);
    }
    if (!bias.defined() || sizes.numel() == 0) return {};
    const bool is_bool = bias.dtype() == kBool;
    bias = kernels::cast(bias, dtype);
    if (is_bool) bias = kernels::unary(bias, kernels::UnaryOp::Log);
    bias = view::expand(bias, sizes);
    const Tensor largest = kernels::max(bias, bias.dim() - 1, true).values;
    const Tensor alive = kernels::cast(kernels::compare_scalar(largest, kNever, kernels::CompareOp::NotEqual), dtype);
    if (is_floating_point(given.defined() ? given.dtype() : kBool)) {
      // A function of the mask, which may need a gradient.
      return {choose(alive > 0.0, given.to(dtype, {}), 0.0), alive};
    }
    // 0 for a fully masked row, -inf for the others.
    const Tensor least =
        kernels::unary(kernels::binary_scalar(alive, 1.0, kernels::BinaryOp::Sub, true), kernels::UnaryOp::Log);
    return {kernels::binary(bias, least, kernels::BinaryOp::Maximum), alive};
  }
};

// Whether the leading dimensions, except the last of them, are equal in all three. Invalid shapes are left to the
// kernels.
bool leads_alike(const Tensor& query, const Tensor& key, const Tensor& value) {
  if (key.dim() != query.dim() || value.dim() != query.dim()) return false;
  for (int d = 0; d < query.dim() - 3; ++d) {
    if (key.sizes()[d] != query.sizes()[d] || value.sizes()[d] != query.sizes()[d]) return false;
  }
  return true;
}

// [.., heads, rows, columns] as [n, heads, rows, columns].
Tensor with_one_batch(const Tensor& x, SourceLocation where) { return x.flatten(0, x.dim() - 4, where); }

// The same for a mask that broadcasts to the scores.
Tensor mask_with_one_batch(const Tensor& mask, const Tensor& query, SourceLocation where) {
  if (mask.dim() <= 3) return mask;
  Shape sizes = mask.sizes();
  const int added = query.dim() - mask.dim();
  if (added < 0) return mask;
  for (int d = 0; d < added; ++d)
    sizes.insert(d, query.sizes()[d]);
  for (int d = added; d < query.dim() - 3; ++d) {
    if (sizes[d] == 1) sizes[d] = query.sizes()[d];
  }
  return with_one_batch(mask.expand(sizes, where), where);
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"scaled_dot_product_attention">(where, query, key, value, attn_mask))
      return scaled_dot_product_attention(in[0], in[1], in[2], in[3], dropout_p, is_causal, scale, enable_gqa, where);
  }
  if (!(dropout_p >= 0 && dropout_p <= 1)) {
    throw ValueError(where, "dropout probability has to be between 0 and 1, but got {}", dropout_p);
  }
  if (query.dim() > kernels::kMaxAttentionDims && leads_alike(query, key, value)) {
    Shape sizes = query.sizes();
    sizes[query.dim() - 1] = value.size(-1);
    const Tensor mask = attn_mask.defined() ? mask_with_one_batch(attn_mask, query, where) : attn_mask;
    return scaled_dot_product_attention(with_one_batch(query, where), with_one_batch(key, where),
                                        with_one_batch(value, where), mask, dropout_p, is_causal, scale, enable_gqa,
                                        where)
        .reshape(sizes, where);
  }
  kernels::AttentionOptions options{.is_causal = is_causal, .dropout_p = dropout_p, .enable_gqa = enable_gqa};
  // A width of 0 gives scores of 0.
  const double width = query.dim() == 0 ? 1 : static_cast<double>(query.sizes().back());
  options.scale = scale.value_or(width > 0 ? 1 / std::sqrt(width) : 1);
  if (dropout_p > 0 && query.dim() >= 2 && key.dim() >= 2) {
    Shape scores = query.sizes();
    scores[query.dim() - 1] = key.size(-2);
    options.state = default_generator().reserve(static_cast<uint64_t>(scores.numel()));
  }
  options.mask = attn_mask;
  const kernels::Attention result =
      autograd::detail::located(where, [&] { return kernels::attention(query, key, value, options); });
  const Tensor* inputs[] = {&query, &key, &value, &attn_mask};
  const Tensor* outputs[] = {&result.out};
  const autograd::TensorRefs used(inputs, attn_mask.defined() ? 4 : 3);
  if (auto* node =
          autograd::record<AttentionNode>({.op = "scaled_dot_product_attention", .where = where}, used, outputs)) {
    options.mask = Tensor();
    node->options = options;
    node->q.save_input(*node, query);
    node->k.save_input(*node, key);
    node->v.save_input(*node, value);
    node->mask.save_input(*node, attn_mask);
    node->out.save_output(*node, result.out);
    node->logsumexp.save_input(*node, result.logsumexp);
  }
  return result.out;
}

}  // namespace brigade
