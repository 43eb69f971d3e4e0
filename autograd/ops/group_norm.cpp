// The node of group norm, which instance norm uses with one channel per group.
#include <brigade/autograd/ops/normalization.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/record.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/normalization.h>
#include <brigade/kernels/reduce.h>

#include <utility>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using namespace autograd::detail;
using kernels::BinaryOp;

struct GroupNormNode final : autograd::Node {
  SavedTensor x, weight, mean, rstd;
  int64_t groups = 1;
  double eps = 0;
  DType weight_dtype = kFloat32, bias_dtype = kFloat32;

  void backward(BackwardContext& context) override {
    if (context.create_graph()) return backward_with_graph(context);
    context.write(1, 2, [&](const auto& to_weight, const auto& to_bias) {
      const kernels::GroupNormBackwardOptions options{
          groups,
          context.needs_input_grad(0),
          {context.needs_input_grad(1), weight_dtype, to_weight.out, to_weight.accumulate},
          {context.needs_input_grad(2), bias_dtype, to_bias.out, to_bias.accumulate}};
      const kernels::GroupNormGrads grads = kernels::group_norm_backward(
          context.grad(), x.unpack(*this), weight.unpack(*this), mean.unpack(*this), rstd.unpack(*this), options);
      if (options.input) context.set(0, grads.x);
      return std::pair(grads.weight, grads.bias);
    });
  }

  // The same by differentiable operations, over [N, groups, channels of a group, all that follows].
  void backward_with_graph(BackwardContext& context) {
    const Tensor input = x.unpack(*this);
    const Tensor gain = weight.unpack(*this);
    const int64_t channels = input.size(1);
    int64_t area = 1;
    for (int d = 2; d < input.dim(); ++d)
      area *= input.size(d);
    const Shape grouped{input.size(0), groups, channels / groups, area};
    const Shape dims{2, 3};
    const Tensor grad = widened(context.grad()).reshape(grouped, {});
    const Normalised normalised = normalise(widened(input).reshape(grouped, {}), dims, eps, true);
    if (context.needs_input_grad(0)) {
      const Tensor slope = gain.defined() ? grad * gain.reshape({groups, channels / groups, 1}, {}) : grad;
      const Tensor result = normalised_gradient(slope, normalised, dims, true);
      context.set(0, in_dtype(result.reshape(input.sizes(), {}), input.dtype()));
    }
    const auto over_samples = [&](const Tensor& terms) {
      return sum(terms, {0, 3}, false, {}).reshape({channels}, {});
    };
    if (context.needs_input_grad(1)) context.set(1, in_dtype(over_samples(grad * normalised.values), weight_dtype));
    if (context.needs_input_grad(2)) context.set(2, in_dtype(over_samples(grad), bias_dtype));
  }
};

Tensor normalise_groups(const autograd::OpInfo& info, const Tensor& x, int64_t groups, const Tensor& weight,
                        const Tensor& bias, double eps) {
  const kernels::GroupNorm result =
      located(info.where, [&] { return kernels::group_norm(x, groups, weight, bias, eps); });
  if (auto* node = autograd::record<GroupNormNode>(info, {x, weight, bias}, result.y)) {
    node->x.save_input(*node, x);
    node->weight.save_input(*node, weight);
    node->mean.save_input(*node, result.mean);
    node->rstd.save_input(*node, result.rstd);
    node->groups = groups;
    node->eps = eps;
    if (weight.defined()) node->weight_dtype = weight.dtype();
    if (bias.defined()) node->bias_dtype = bias.dtype();
  }
  return result.y;
}

// running = (1 - momentum) * running + momentum * batch
void move_running(const Tensor& running, const Tensor& batch, double momentum) {
  kernels::scale_inplace(running, 1 - momentum);
  kernels::add_inplace(running, kernels::cast(batch, running.dtype()), momentum);
  running.bump_version();
}

// Moves running statistics [C] towards the mean over the samples of x.
void track(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, double momentum) {
  const int64_t samples = x.size(0), channels = x.size(1), area = x.numel() / (samples * channels);
  // Each channel of each sample as a channel of its own: means, then sums of squared distances.
  const Tensor dense = kernels::contiguous(x);
  const Tensor planes = view::as_strided(dense, {1, samples * channels, area}, {samples * channels * area, area, 1},
                                         dense.storage_offset());
  const Tensor moments = kernels::batch_norm_moments(planes);
  const auto over_samples = [&](int64_t i) {
    const Tensor rows = view::as_strided(moments, {samples, channels}, {channels, 1},
                                         moments.storage_offset() + i * samples * channels);
    return kernels::mean(rows, {.dims = {0}});
  };
  if (running_mean.defined()) move_running(running_mean, over_samples(0), momentum);
  if (running_var.defined()) {
    const double unbiased = 1 / static_cast<double>(area - 1);
    move_running(running_var, kernels::binary_scalar(over_samples(1), unbiased, BinaryOp::Mul, false), momentum);
  }
}

}  // namespace

Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps,
                  SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"group_norm">(where, x, weight, bias))
      return group_norm(in[0], num_groups, in[1], in[2], eps, where);
  }
  if (x.dim() >= 2 && num_groups > 0 && x.numel() > 0 && x.numel() == num_groups)
    throw ValueError(where, "Expected more than 1 value per channel when training, got input size {}", x.sizes());
  return normalise_groups({.op = "group_norm", .where = where}, x, num_groups, weight, bias, eps);
}

Tensor instance_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                     const Tensor& bias, bool use_input_stats, double momentum, double eps, SourceLocation where) {
  if (x.dim() < 2) throw ShapeError(where, "instance_norm: expected [N, C, ...], got {}", x.sizes());
  if (running_mean.defined() != running_var.defined())
    throw ValueError("instance_norm: running_mean and running_var must either both be there or neither", where);
  if (!use_input_stats) {
    if (!running_mean.defined() || !running_var.defined())
      throw ValueError("instance_norm: expected running_mean and running_var without use_input_stats", where);
    return batch_norm(x, weight, bias, running_mean, running_var, false, momentum, eps, where);
  }
  int64_t area = 1;
  for (int d = 2; d < x.dim(); ++d)
    area *= x.size(d);
  if (area == 1) {
    throw ValueError(where, "Expected more than 1 spatial element when training, got input size {}", x.sizes());
  }
  for (const Tensor& running : {running_mean, running_var}) {
    if (!running.defined() || running.sizes() == Shape{x.size(1)}) continue;
    throw ShapeError(where, "instance_norm: expected running statistics [{}], got {}", x.size(1), describe(running));
  }
  const Tensor y = normalise_groups({.op = "instance_norm", .where = where}, x, x.size(1), weight, bias, eps);
  if (x.numel() > 0 && (running_mean.defined() || running_var.defined())) track(x, running_mean, running_var, momentum);
  return y;
}

}  // namespace brigade
