// Flattens parameters, averages them by one all-reduce per device and dtype, and copies them back.
#include <brigade/dist/ddp/model_averaging.h>

#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>

#include <map>
#include <utility>

namespace brigade::dist {

void average_parameters(ProcessGroup& group, const std::vector<Tensor>& parameters, SourceLocation where) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].defined()) throw ValueError(where, "average_parameters: parameter {} is undefined", i);
    if (!is_floating_point(parameters[i].dtype())) {
      throw DTypeError(where, "average_parameters: parameter {} is {}, expected a floating dtype", i,
                       describe(parameters[i]));
    }
  }
  if (group.size() == 1) return;
  // One collective per device and dtype.
  std::map<std::pair<Device, DType>, std::vector<Tensor>> alike;
  for (const Tensor& parameter : parameters)
    alike[{parameter.device(), parameter.dtype()}].push_back(parameter);
  for (const auto& [kind, tensors] : alike) {
    int64_t numel = 0;
    for (const Tensor& tensor : tensors)
      numel += tensor.numel();
    const Tensor flat = group.allocate(numel, kind.second, kind.first);
    const auto slot = [&](const Tensor& tensor, int64_t at) {
      return view::as_strided(flat, tensor.sizes(), contiguous_strides(tensor.sizes()), at);
    };
    int64_t at = 0;
    for (const Tensor& tensor : tensors) {
      kernels::copy(slot(tensor, at), tensor);
      at += tensor.numel();
    }
    group.all_reduce(flat, {.op = ReduceOp::Avg, .topic = {Phase::Averaging, Name("model averaging")}}, where)->wait();
    at = 0;
    for (const Tensor& tensor : tensors) {
      kernels::copy(tensor, slot(tensor, at));
      tensor.bump_version();
      at += tensor.numel();
    }
  }
}

PeriodicModelAverager::PeriodicModelAverager(ProcessGroupPtr group, uint64_t period, uint64_t warmup_steps)
    : group_(std::move(group)), period_(period), warmup_(warmup_steps) {
  if (!group_) throw ValueError("PeriodicModelAverager: the process group is empty; see init_process_group");
  if (period < 1) throw ValueError("PeriodicModelAverager: the period must be at least 1, got 0");
}

bool PeriodicModelAverager::average_parameters(const std::vector<Tensor>& parameters, SourceLocation where) {
  const uint64_t call = step_++;
  if (call < warmup_ || (call - warmup_) % period_ != 0) return false;
  dist::average_parameters(*group_, parameters, where);
  return true;
}

bool PeriodicModelAverager::average_parameters(const nn::Module& module, SourceLocation where) {
  std::vector<Tensor> trained;
  for (const Tensor& parameter : module.parameters()) {
    if (parameter.requires_grad()) trained.push_back(parameter);
  }
  return average_parameters(trained, where);
}

}  // namespace brigade::dist
