// Device-independent parts of attention: checks, layouts, allocation of results.
#include <brigade/kernels/attention.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/activation.h>
#include <brigade/kernels/common/attention.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/reduce.h>

#include <string>

namespace brigade::kernels {
namespace {

constexpr const char* kName = "scaled_dot_product_attention";

std::string describe_all(const Tensor& q, const Tensor& k, const Tensor& v) {
  return "query " + describe(q) + ", key " + describe(k) + " and value " + describe(v);
}

// The number of query heads that share one head of `x`.
int64_t group_of(const Tensor& q, const Tensor& x, const char* what) {
  const int64_t heads = q.size(-3);
  const int64_t own = x.size(-3);
  if (own == heads) return 1;
  if (own == 0 || heads % own != 0) {
    throw ShapeError(
        "{}: with enable_gqa the query's heads (dimension -3) must be a multiple of the {}'s, got {} and {}", kName,
        what, describe(q), describe(x));
  }
  return heads / own;
}

void check_operands(const Tensor& q, const Tensor& k, const Tensor& v, bool enable_gqa) {
  if (q.dim() > kMaxAttentionDims) {
    throw ShapeError("{}: expected at most {} dimensions, got {}", kName, kMaxAttentionDims, describe_all(q, k, v));
  }
  if (q.device() != k.device() || q.device() != v.device()) {
    throw DeviceError("{}: query, key and value must be on one device, got {}, {} and {}", kName, q.device(),
                      k.device(), v.device());
  }
  if (q.dtype() != k.dtype() || q.dtype() != v.dtype() || !is_floating_point(q.dtype())) {
    throw DTypeError("{}: expected query, key and value of one floating dtype, got {}; convert with .to()", kName,
                     describe_all(q, k, v));
  }
  bool fits = q.dim() >= (enable_gqa ? 3 : 2) && k.dim() == q.dim() && v.dim() == q.dim();
  for (int d = 0; fits && d < q.dim() - (enable_gqa ? 3 : 2); ++d)
    fits = q.sizes()[d] == k.sizes()[d] && q.sizes()[d] == v.sizes()[d];
  if (!fits || q.size(-1) != k.size(-1) || k.size(-2) != v.size(-2)) {
    throw ShapeError(
        "{}: expected query [..., queries, width], key [..., keys, width] and value [..., keys, value width] with "
        "equal leading dimensions{}, got {}",
        kName, enable_gqa ? " but for the heads, dimension -3" : "; with enable_gqa heads (dimension -3) may be shared",
        describe_all(q, k, v));
  }
}

// The mask broadcast to the shape of the scores.
Tensor prepare_mask(const Tensor& mask, const Tensor& q, const Shape& scores, DType compute_dtype) {
  if (mask.device() != q.device()) {
    throw DeviceError("{}: attn_mask must be on the device of the query, got {} and {}", kName, mask.device(),
                      q.device());
  }
  if (mask.dtype() != kBool && mask.dtype() != kFloat32 && mask.dtype() != q.dtype()) {
    throw DTypeError(
        "{}: expected an attn_mask of dtype bool, float32 or that of the query, {}, got {}; convert with .to()", kName,
        name(q.dtype()), name(mask.dtype()));
  }
  bool fits = mask.dim() <= scores.size();
  for (int d = 1; fits && d <= mask.dim(); ++d)
    fits = mask.size(-d) == 1 || mask.size(-d) == scores[scores.size() - d];
  if (!fits) {
    throw ShapeError("{}: expected an attn_mask that broadcasts to the scores' shape {}, got {}", kName, scores,
                     describe(mask));
  }
  return view::expand(mask.dtype() == kBool ? mask : cast(mask, compute_dtype), scores);
}

// Matrix products need rows that are dense and do not overlap.
Tensor with_dense_rows(const Tensor& x) {
  const bool dense = x.size(-1) <= 1 || x.stride(-1) == 1;
  const bool apart = x.size(-2) <= 1 || x.stride(-2) >= std::max<int64_t>(x.size(-1), 1);
  return dense && apart ? x : clone(x);
}

}  // namespace

MatrixStrides matrix_strides(const Tensor& x, int64_t group) {
  MatrixStrides result;
  result.group = group;
  // The row stride must not be smaller than the row, even for a single row.
  result.row = x.size(-2) <= 1 ? std::max<int64_t>(x.size(-1), 1) : x.stride(-2);
  result.column = x.stride(-1);
  for (int d = 0; d < x.dim() - 2; ++d)
    result.batch[d + kMaxAttentionDims - x.dim()] = x.strides()[d];
  return result;
}

AttentionPlan prepare_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  check_operands(q, k, v, options.enable_gqa);
  check_dropout_probability(options.dropout_p);
  if (options.is_causal && options.mask.defined())
    throw ValueError("{}: Explicit attn_mask should not be set when is_causal=True", kName);
  AttentionPlan plan;
  plan.compute_dtype = q.dtype() == kFloat64 ? kFloat64 : kFloat32;
  if (options.enable_gqa) {
    plan.key_group = group_of(q, k, "key");
    plan.value_group = group_of(q, v, "value");
  }
  AttentionShape& shape = plan.shape;
  shape.queries = q.size(-2);
  shape.keys = k.size(-2);
  shape.width = static_cast<int>(q.size(-1));
  shape.value_width = static_cast<int>(v.size(-1));
  shape.is_causal = options.is_causal;
  shape.scale = options.scale;
  Shape scores = q.sizes();
  scores[q.dim() - 1] = shape.keys;
  for (int d = 0; d < q.dim() - 2; ++d) {
    shape.batch_sizes[d + kMaxAttentionDims - q.dim()] = q.sizes()[d];
    shape.batches *= q.sizes()[d];
  }
  if (options.mask.defined()) plan.mask = prepare_mask(options.mask, q, scores, plan.compute_dtype);
  plan.q = with_dense_rows(q);
  plan.k = with_dense_rows(k);
  plan.v = with_dense_rows(v);
  const double p = options.dropout_p;
  plan.kept = {options.state, static_cast<float>(p), p == 1 ? 0 : 1 / (1 - p)};
  return plan;
}

Attention empty_result(const AttentionPlan& plan) {
  Shape sizes = plan.q.sizes();
  sizes[sizes.size() - 1] = plan.shape.value_width;
  Attention result;
  result.out = empty(sizes, plan.q.options());
  sizes.pop_back();
  result.logsumexp = empty(sizes, {plan.compute_dtype, plan.q.device()});
  return result;
}

AttentionGradients empty_gradients(const AttentionPlan& plan, AttentionWanted wanted) {
  AttentionGradients result;
  if (wanted.q) result.q = empty(plan.q.sizes(), plan.q.options());
  const auto for_each_head = [&](const Tensor& x, int64_t group) {
    Shape sizes = x.sizes();
    if (group > 1) sizes[x.dim() - 3] *= group;
    return empty(sizes, x.options());
  };
  if (wanted.k) result.k = for_each_head(plan.k, plan.key_group);
  if (wanted.v) result.v = for_each_head(plan.v, plan.value_group);
  if (wanted.mask) {
    Shape sizes = plan.q.sizes();
    sizes[sizes.size() - 1] = plan.shape.keys;
    result.mask = empty(sizes, {plan.compute_dtype, plan.q.device()});
  }
  return result;
}

void finish_gradients(const AttentionPlan& plan, const AttentionOptions& options, AttentionGradients& gradients) {
  const auto sum_heads = [](Tensor& gradient, const Tensor& x, int64_t group) {
    if (!gradient.defined() || group == 1) return;
    const int64_t matrix = x.size(-2) * x.size(-1);
    const Shape grouped{gradient.numel() == 0 ? 0 : gradient.numel() / (group * matrix), group, matrix};
    const Tensor sums =
        sum(view::as_strided(gradient, grouped, contiguous_strides(grouped), gradient.storage_offset()), {.dims = {1}});
    gradient = view::as_strided(sums, x.sizes(), contiguous_strides(x.sizes()), 0);
  };
  sum_heads(gradients.k, plan.k, plan.key_group);
  sum_heads(gradients.v, plan.v, plan.value_group);
  if (gradients.mask.defined())
    gradients.mask = cast(sum_to(gradients.mask, options.mask.sizes()), options.mask.dtype());
}

Tensor prepare_attention_gradient(const Tensor& grad, const Attention& result) {
  check_gradient_like(grad, result.out, kName);
  return with_dense_rows(grad);
}

}  // namespace brigade::kernels
