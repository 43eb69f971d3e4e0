// The node of var and std, which may have the mean as a second result.
#include <brigade/autograd/ops/reduce.h>

#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/reduce.h>

#include <algorithm>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using namespace autograd::detail;

// Outputs: the variance or its root, and optionally the mean. Derivatives: of the variance
// 2 (x - mean) / (n - correction), of the root half of that divided by the root, of the mean 1 / n.
struct VarianceNode final : Node {
  SavedTensor x, mean;
  SavedTensor root;  // of a standard deviation
  Shape dims;
  double correction = 1;
  bool is_root = false;

  void backward(BackwardContext& context) override {
    const Tensor given = x.unpack(*this);
    const Tensor values = widened(given);
    const Shape kept = kept_sizes(values.sizes(), dims);
    const auto count = static_cast<double>(autograd::detail::reduced_count(values.sizes(), dims));
    Tensor result;
    if (context.grad(0).defined()) {
      Tensor factor = widened(context.grad(0)).reshape(kept, {});
      if (is_root) {
        const Tensor spread = widened(root.unpack(*this)).reshape(kept, {});
        // 0 where the root is 0.
        const Tensor is_zero =
            kernels::cast(kernels::compare_scalar(spread, 0.0, kernels::CompareOp::Equal), spread.dtype());
        const Tensor divided = factor / (spread + is_zero);
        factor = divided * kernels::binary_scalar(is_zero, 1.0, kernels::BinaryOp::Sub, true);
      }
      factor = factor * ((is_root ? 1 : 2) / std::max(0.0, count - correction));
      // The mean of half types was rounded to their dtype, which is too inexact if the values lie close together.
      const bool is_exact = !is_half(given.dtype()) && !context.create_graph();
      const Tensor center = is_exact ? mean.unpack(*this).reshape(kept, {}) : mean_over(values, dims);
      // Without degrees of freedom the derivative is infinite or NaN, whatever x is.
      const auto distance = [&] {
        return count > correction ? values - center : kernels::binary(values, center, kernels::BinaryOp::Sub);
      };
      result = context.create_graph() ? distance() * factor : kernels::variance_backward(factor, values, center, dims);
    }
    if (outputs.size() > 1 && context.grad(1).defined()) {
      const Tensor part = widened(context.grad(1)).reshape(kept, {}) * (1 / count);
      result = result.defined() ? result + part : part.expand(values.sizes(), {});
    }
    context.set(0, in_dtype(result, given.dtype()));
  }
};

SpreadAndMean spread(const autograd::OpInfo& info, const Tensor& x, const Dims& dims, double correction, bool keepdim,
                     bool is_root, bool with_mean) {
  const kernels::Variance found =
      located(info.op, info.where, [&] { return kernels::variance(x, dims, correction, keepdim, is_root); });
  const Tensor& result = found.variance;
  const Tensor* inputs[] = {&x};
  const Tensor* outputs[] = {&result, &found.mean};
  if (auto* node = record<VarianceNode>(info, inputs, autograd::TensorRefs(outputs, with_mean ? 2 : 1))) {
    node->x.save_input(*node, x);
    // The caller may write to the returned mean.
    node->mean.save_input(*node, with_mean ? kernels::clone(found.mean) : found.mean);
    if (is_root) node->root.save_output(*node, result);
    node->dims = dims;
    node->correction = correction;
    node->is_root = is_root;
  }
  return {result, found.mean};
}

}  // namespace

Tensor var(const Tensor& x, const Dims& dims, double correction, bool keepdim, SourceLocation where) {
  return spread({.op = "var", .where = where}, x, dims, correction, keepdim, false, false).spread;
}
Tensor std(const Tensor& x, const Dims& dims, double correction, bool keepdim, SourceLocation where) {
  return spread({.op = "std", .where = where}, x, dims, correction, keepdim, true, false).spread;
}
SpreadAndMean var_mean(const Tensor& x, const Dims& dims, double correction, bool keepdim, SourceLocation where) {
  return spread({.op = "var_mean", .where = where}, x, dims, correction, keepdim, false, true);
}
SpreadAndMean std_mean(const Tensor& x, const Dims& dims, double correction, bool keepdim, SourceLocation where) {
  return spread({.op = "std_mean", .where = where}, x, dims, correction, keepdim, true, true);
}

}  // namespace brigade
