#include <brigade/autograd/ops/attention.h>

#include <brigade/autograd/detail/located.h>
#include <brigade/autograd/grad_mode.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/attention.h>

#include <cmath>

namespace brigade {

namespace {

// Keeps the logarithms of the rows' sums instead of probabilities, and the place in the random stream instead of a
// dropout mask.
struct AttentionNode final : autograd::Node {
  autograd::SavedTensor q, k, v, mask, out, logsumexp;
  kernels::AttentionOptions options;  // without the mask

  void backward(autograd::BackwardContext& context) override {
    const kernels::Attention result{out.unpack(*this), logsumexp.unpack(*this)};
    kernels::AttentionOptions with_mask = options;
    with_mask.mask = mask.unpack(*this);
    kernels::AttentionGradients gradients = kernels::attention_backward(
        context.grad(), q.unpack(*this), k.unpack(*this), v.unpack(*this), result, with_mask,
        {.q = context.needs_input_grad(0), .k = context.needs_input_grad(1), .v = context.needs_input_grad(2)});
    context.set(0, std::move(gradients.q));
    context.set(1, std::move(gradients.k));
    context.set(2, std::move(gradients.v));
  }
};

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, SourceLocation where) {
  if (!(dropout_p >= 0 && dropout_p <= 1)) {
    throw ValueError("dropout probability has to be between 0 and 1, but got " + std::to_string(dropout_p) +
                         " (called at " + to_string(where) + ")",
                     where);
  }
  if (attn_mask.requires_grad() && autograd::GradMode::is_enabled()) {
    throw AutogradError(
        "scaled_dot_product_attention: attn_mask gets no gradient, but requires grad; pass attn_mask.detach(), or "
        "compute softmax(matmul(query, key.transpose(-2, -1)) * scale + attn_mask, -1) (called at " +
            to_string(where) + ")",
        where);
  }
  kernels::AttentionOptions options{.is_causal = is_causal, .dropout_p = dropout_p};
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
