// Gathers and combines the moments of all ranks, and sums over the ranks in the node's backward.
#include <brigade/dist/ddp/sync_batch_norm.h>

#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/record.h>
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/dist/ddp/join.h>
#include <brigade/dist/groups/group_memory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/normalization.h>

#include <numeric>

namespace brigade::dist {
namespace {

// "SyncBatchNorm `features.1`"; a layer that is not part of a module tree has no name.
std::string layer(const std::string& name) { return name.empty() ? "SyncBatchNorm" : "SyncBatchNorm `" + name + "`"; }

// Runs before anything is exchanged, so that a refused batch has no effect.
void check_shapes(const Tensor& x, const std::vector<std::pair<const char*, Tensor>>& per_channel,
                  const std::string& name, SourceLocation where) {
  if (x.dim() < 2) {
    throw ShapeError(where, "{}: expected at least 2D input (got {}D input {})", layer(name), x.dim(), x.sizes());
  }
  for (const auto& [what, tensor] : per_channel) {
    if (!tensor.defined() || tensor.sizes() == Shape{x.size(1)}) continue;
    throw ShapeError(where, "{}: {} must be [{}] for an input {}, got {}", layer(name), what, x.size(1), x.sizes(),
                     describe(tensor));
  }
}

// The number of values per channel over all ranks. The host needs it to decide how to continue, and must not wait for
// a device to get it.
int64_t count_of_all(ProcessGroup& group, int64_t count, const std::string& name, SourceLocation where) {
  const Tensor mine = group.allocate(1, kInt64);
  const Tensor all = group.allocate(group.size(), kInt64);
  *mine.data_ptr<int64_t>() = count;
  group.all_gather(all, mine, {.topic = {Phase::Layer, Name("counts"), {Name(layer(name))}}}, where)->wait();
  const auto* const counts = all.data_ptr<int64_t>();
  return std::accumulate(counts, counts + group.size(), int64_t{0});
}

struct Combined {
  Tensor moments;     // [2, C] of all ranks' values
  int64_t count = 0;  // per channel
};

// `moments` [2, C] of this rank's `count` values per channel. The ranks are combined in rank order, so that all hold
// the same bits.
Combined combine(ProcessGroup& group, const JoinedLayer& joined, const Tensor& moments, int64_t count,
                 const std::string& name, SourceLocation where) {
  const Device device = moments.device();
  if (device != Device() && joined.is_in_join()) {
    const Combined here = combine(group, joined, brigade::detail::on_host(moments), count, name, where);
    return {here.moments.to(device), here.count};
  }
  const int64_t numbers = moments.numel();
  const Tensor mine = room_to_exchange(group, numbers + 1, kFloat64, device);
  const Tensor all = room_to_exchange(group, group.size() * (numbers + 1), kFloat64, device);
  kernels::copy(mine.narrow(0, 0, numbers), view::flat(moments));
  kernels::fill(mine.narrow(0, numbers, 1), static_cast<double>(count));
  const Topic topic =
      joined.before_all_gather(numbers + 1, {Phase::Layer, Name("statistics"), {Name(layer(name))}}, where);
  const WorkPtr gathered = group.all_gather(all, mine, {.topic = topic}, where);
  Combined result;
  if (device != Device()) result.count = count_of_all(group, count, name, where);
  gathered->wait();
  const Tensor rows = all.view({group.size(), numbers + 1});
  if (device == Device()) {
    for (int rank = 0; rank < group.size(); ++rank)
      result.count += static_cast<int64_t>(rows.data_ptr<double>()[rank * (numbers + 1) + numbers]);
  }
  result.moments = kernels::batch_norm_combine(rows);
  return result;
}

struct SyncBatchNormNode final : autograd::Node {
  // The statistics as used in forward, independent of the running ones.
  autograd::SavedTensor x, weight, mean, invstd;
  ProcessGroupPtr group;  // kept alive for backward
  JoinedLayer joined;
  int64_t count = 0;  // of all ranks
  DType weight_dtype = kFloat32, bias_dtype = kFloat32;
  std::string layer;

  void backward(autograd::BackwardContext& context) override {
    if (context.create_graph()) {
      // The statistics depend on the batches of all ranks, and so would a second derivative.
      throw AutogradError(
          where,
          "{} has no second derivative: create_graph ran through it. Use BatchNorm, GroupNorm or the running "
          "statistics (eval) where gradients are differentiated again",
          layer);
    }
    const Tensor& grad = context.grad();
    const Tensor input = x.unpack(*this);
    const Tensor scale = weight.unpack(*this);
    const Tensor center = mean.unpack(*this);
    const Tensor inverse = invstd.unpack(*this);
    const Tensor sums = kernels::batch_norm_gradient_sums(grad, input, center, inverse);
    // Sums of this rank alone, since the wrapper averages the gradients of parameters; in their own dtype, which may
    // differ from that of x.
    const auto row = [&](int64_t i, DType dtype) {
      const Tensor result = empty({sums.size(1)}, {dtype, sums.device()});
      kernels::copy(result, view::select(sums, 0, i));
      return result;
    };
    if (context.needs_input_grad(1)) context.set(1, row(1, weight_dtype));
    if (context.needs_input_grad(2)) context.set(2, row(0, bias_dtype));
    if (!context.needs_input_grad(0)) return;
    const Device device = joined.is_in_join() ? Device() : sums.device();
    const Tensor total = room_to_exchange(*group, sums.numel(), kFloat64, device);
    kernels::copy(total, view::flat(sums));
    const Topic topic =
        joined.before_all_reduce(total.numel(), {Phase::Layer, Name("gradient sums"), {Name(layer)}}, where);
    group->all_reduce(total, {.op = ReduceOp::Sum, .topic = topic}, where)->wait();
    kernels::copy(view::flat(sums), total);
    context.set(0, kernels::batch_norm_input_gradient(grad, input, scale, center, inverse, sums, count));
  }
};

void synchronise(nn::BatchNormImpl& norm, const ProcessGroupPtr& group) {
  if (!group) throw ValueError("SyncBatchNorm: the process group is empty; see init_process_group");
  // The module owns the function, so capturing the module by reference is safe.
  norm.set_training_forward([&norm, group](const Tensor& x, double momentum, SourceLocation where) {
    return sync_batch_norm(group, x, norm.weight, norm.bias, norm.running_mean, norm.running_var, momentum,
                           norm.options.eps, norm.path(), where);
  });
}

}  // namespace

Tensor sync_batch_norm(const ProcessGroupPtr& group, const Tensor& x, const Tensor& weight, const Tensor& bias,
                       const Tensor& running_mean, const Tensor& running_var, double momentum, double eps,
                       const std::string& name, SourceLocation where) {
  check_shapes(x, {{"weight", weight}, {"bias", bias}, {"running_mean", running_mean}, {"running_var", running_var}},
               name, where);
  const Tensor moments_here = autograd::detail::located(where, [&] { return kernels::batch_norm_moments(x); });
  const int64_t own = x.size(1) > 0 ? x.numel() / x.size(1) : 0;
  const JoinedLayer joined = JoinedLayer::of(*group);
  const auto [moments, count] = combine(*group, joined, moments_here, own, name, where);
  if (count < 2) {
    throw ValueError(where,
                     "Expected more than 1 value per channel when training, got {} on all {} ranks together, "
                     "input size {} on this one, in {}",
                     count, group->size(), x.sizes(), layer(name));
  }
  const kernels::BatchNorm result =
      kernels::batch_norm_apply(x, weight, bias, running_mean, running_var, moments, count, momentum, eps);
  for (const Tensor& running : {running_mean, running_var}) {
    if (running.defined()) running.bump_version();
  }
  if (auto* node =
          autograd::record<SyncBatchNormNode>({.op = "sync_batch_norm", .where = where}, {x, weight, bias}, result.y)) {
    node->x.save_input(*node, x);
    node->weight.save_input(*node, weight);
    node->mean.save_input(*node, result.mean);
    node->invstd.save_input(*node, result.invstd);
    node->group = group;
    node->joined = joined;
    node->count = count;
    if (weight.defined()) node->weight_dtype = weight.dtype();
    if (bias.defined()) node->bias_dtype = bias.dtype();
    node->layer = layer(name);
  }
  return result.y;
}

SyncBatchNormImpl::SyncBatchNormImpl(int64_t features, const ProcessGroupPtr& group, const nn::BatchNormOptions& o)
    : BatchNormImpl(features, o) {
  synchronise(*this, group);
}

void SyncBatchNormImpl::check_input(const Tensor& x, SourceLocation where) const {
  if (x.dim() >= 2) return;
  throw ShapeError(where, "SyncBatchNorm: expected at least 2D input (got {}D input {})", x.dim(), x.sizes());
}

int convert_sync_batchnorm(nn::Module& module, const ProcessGroupPtr& group) {
  int count = 0;
  for (nn::Module* const each : module.modules()) {
    if (auto* const norm = dynamic_cast<nn::BatchNormImpl*>(each)) {
      synchronise(*norm, group);
      ++count;
    }
  }
  return count;
}

}  // namespace brigade::dist
