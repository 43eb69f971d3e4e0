#include <brigade/dist/sync_batch_norm.h>

#include <brigade/autograd/record.h>
#include <brigade/core/view.h>
#include <brigade/kernels/batch_norm.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/reduce.h>
#include <brigade/nn/batch_norm.h>

#include <fmt/format.h>

#include <cmath>

namespace brigade::dist {

namespace {

using kernels::BinaryOp;

// All dimensions but 1.
Shape other_dims(const Tensor& x) {
  Shape dims;
  for (int d = 0; d < x.dim(); ++d) {
    if (d != 1) dims.push_back(d);
  }
  return dims;
}

// [C] as [1, C, 1, ...], to broadcast against x.
Tensor per_channel(const Tensor& values, const Tensor& x) {
  Shape sizes;
  for (int d = 0; d < x.dim(); ++d)
    sizes.push_back(d == 1 ? values.numel() : 1);
  return view::as_strided(values, sizes, contiguous_strides(sizes), values.storage_offset());
}

Tensor binary(const Tensor& a, const Tensor& b, BinaryOp op) { return kernels::binary(a, b, op); }
Tensor scaled(const Tensor& a, double factor) { return kernels::binary_scalar(a, factor, BinaryOp::Mul, false); }

struct Combined {
  Tensor mean;      // [C] float64
  Tensor variance;  // [C] float64, biased
  double count = 0;
};

// Gathers [count, mean, M2] of every rank and combines them in rank order.
Combined combine(ProcessGroup& group, const Tensor& x, const std::string& name, SourceLocation where) {
  const int64_t channels = x.size(1);
  const auto count = static_cast<double>(channels > 0 ? x.numel() / channels : 0);
  const Tensor mine = group.allocate(1 + 2 * channels, kFloat64);
  kernels::fill(mine, 0.0);
  mine.data_ptr<double>()[0] = count;
  if (count > 0) {
    const Tensor values = kernels::cast(x, kFloat64);
    const Tensor mean = scaled(kernels::sum(values, {.dims = other_dims(x)}), 1 / count);
    const Tensor deviation = binary(values, per_channel(kernels::contiguous(mean), x), BinaryOp::Sub);
    const Tensor squares = kernels::sum(kernels::unary(deviation, kernels::UnaryOp::Square), {.dims = other_dims(x)});
    kernels::copy(view::slice(mine, 0, 1, 1 + channels), mean);
    kernels::copy(view::slice(mine, 0, 1 + channels, 1 + 2 * channels), squares);
  }
  const Tensor all = group.allocate(group.size() * mine.numel(), kFloat64);
  const std::string description = "statistics of SyncBatchNorm `" + name + "`";
  group.all_gather(all, mine, {.description = description}, where)->wait();

  Combined total{zeros({channels}, kFloat64), zeros({channels}, kFloat64), 0};
  auto* const mean = total.mean.data_ptr<double>();
  auto* const squares = total.variance.data_ptr<double>();
  for (int r = 0; r < group.size(); ++r) {
    const double* const of_rank = all.data_ptr<double>() + r * mine.numel();
    const double n = of_rank[0];
    if (n == 0) continue;
    const double sum = total.count + n;
    for (int64_t c = 0; c < channels; ++c) {
      const double delta = of_rank[1 + c] - mean[c];
      mean[c] += delta * n / sum;
      squares[c] += of_rank[1 + channels + c] + delta * delta * total.count * n / sum;
    }
    total.count = sum;
  }
  if (total.count < 2) {
    throw ValueError(
        fmt::format("Expected more than 1 value per channel when training, got {} on all ranks together (last "
                    "input size {}; {})",
                    total.count, to_string(x.sizes()), to_string(where)),
        where);
  }
  for (int64_t c = 0; c < channels; ++c)
    squares[c] /= total.count;
  return total;
}

struct SyncBatchNormNode final : autograd::Node {
  autograd::SavedTensor x, weight, mean, invstd;
  ProcessGroup* group = nullptr;
  double count = 0;
  std::string description;

  void backward(autograd::BackwardContext& context) override {
    const Tensor& dy = context.grad();
    const Tensor input = x.unpack(*this);
    const Tensor scale = weight.unpack(*this);
    const Tensor inverse = invstd.unpack(*this);
    const int64_t channels = input.size(1);
    const Shape dims = other_dims(input);
    const Tensor dy64 = kernels::cast(dy, kFloat64);
    const Tensor xhat =
        binary(binary(kernels::cast(input, kFloat64), per_channel(mean.unpack(*this), input), BinaryOp::Sub),
               per_channel(inverse, input), BinaryOp::Mul);
    const Tensor sums = group->allocate(2 * channels, kFloat64);
    kernels::fill(sums, 0.0);
    const Tensor sum_dy = view::slice(sums, 0, 0, channels);
    const Tensor sum_dy_xhat = view::slice(sums, 0, channels, 2 * channels);
    if (input.numel() > 0) {
      kernels::copy(sum_dy, kernels::sum(dy64, {.dims = dims}));
      kernels::copy(sum_dy_xhat, kernels::sum(binary(dy64, xhat, BinaryOp::Mul), {.dims = dims}));
    }
    // Of this rank alone: the wrapper averages parameters' gradients.
    if (context.needs_input_grad(1)) context.set(1, kernels::cast(kernels::clone(sum_dy_xhat), dy.dtype()));
    if (context.needs_input_grad(2)) context.set(2, kernels::cast(kernels::clone(sum_dy), dy.dtype()));
    if (!context.needs_input_grad(0)) return;
    group->all_reduce(sums, {.op = ReduceOp::Sum, .description = description}, where)->wait();
    Tensor dx = binary(dy64, per_channel(scaled(kernels::clone(sum_dy), 1 / count), input), BinaryOp::Sub);
    dx = binary(dx, binary(xhat, per_channel(scaled(kernels::clone(sum_dy_xhat), 1 / count), input), BinaryOp::Mul),
                BinaryOp::Sub);
    dx = binary(dx, per_channel(inverse, input), BinaryOp::Mul);
    if (scale.defined()) dx = binary(dx, per_channel(kernels::cast(scale, kFloat64), input), BinaryOp::Mul);
    context.set(0, kernels::cast(dx, dy.dtype()));
  }
};

void move_running(const Tensor& running, const Tensor& now, double momentum) {
  if (!running.defined()) return;
  const Tensor moved =
      binary(scaled(kernels::cast(running, kFloat64), 1 - momentum), scaled(now, momentum), BinaryOp::Add);
  kernels::copy(running, moved);
  running.bump_version();
}

}  // namespace

Tensor sync_batch_norm(ProcessGroup& group, const Tensor& x, const Tensor& weight, const Tensor& bias,
                       const Tensor& running_mean, const Tensor& running_var, double momentum, double eps,
                       const std::string& name, SourceLocation where) {
  if (x.dim() < 2) {
    throw ShapeError(fmt::format("SyncBatchNorm: expected at least 2D input (got {}D input {}) ({})", x.dim(),
                                 to_string(x.sizes()), to_string(where)),
                     where);
  }
  const Combined total = combine(group, x, name, where);
  const Tensor invstd = kernels::unary(
      kernels::unary(kernels::binary_scalar(total.variance, eps, BinaryOp::Add, false), kernels::UnaryOp::Sqrt),
      kernels::UnaryOp::Reciprocal);
  move_running(running_mean, total.mean, momentum);
  move_running(running_var, scaled(total.variance, total.count / (total.count - 1)), momentum);

  Tensor y = binary(binary(kernels::cast(x, kFloat64), per_channel(total.mean, x), BinaryOp::Sub),
                    per_channel(invstd, x), BinaryOp::Mul);
  if (weight.defined()) y = binary(y, per_channel(kernels::cast(weight, kFloat64), x), BinaryOp::Mul);
  if (bias.defined()) y = binary(y, per_channel(kernels::cast(bias, kFloat64), x), BinaryOp::Add);
  y = kernels::cast(y, x.dtype());
  if (auto* node =
          autograd::record<SyncBatchNormNode>({.op = "sync_batch_norm", .where = where}, {x, weight, bias}, y)) {
    node->x.save_input(*node, x);
    node->weight.save_input(*node, weight);
    node->mean.save_input(*node, total.mean);
    node->invstd.save_input(*node, invstd);
    node->group = &group;
    node->count = total.count;
    node->description = "gradient sums of SyncBatchNorm `" + name + "`";
  }
  return y;
}

int convert_sync_batchnorm(nn::Module& module, const ProcessGroupPtr& group) {
  int count = 0;
  for (const auto& [path, child] : module.named_modules()) {
    auto* const norm = dynamic_cast<nn::BatchNormImpl*>(child);
    if (!norm) continue;
    ++count;
    norm->set_training_forward([norm, group, name = path](const Tensor& x, double momentum, SourceLocation where) {
      return sync_batch_norm(*group, x, norm->weight, norm->bias, norm->running_mean, norm->running_var, momentum,
                             norm->options.eps, name, where);
    });
  }
  return count;
}

}  // namespace brigade::dist
