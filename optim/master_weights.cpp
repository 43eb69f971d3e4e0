// Makes the float32 copies of half parameters, and keeps copies and parameters consistent.
#include <brigade/optim/detail/master_weights.h>

#include <brigade/kernels/elementwise.h>

#include <utility>

namespace brigade::optim::detail {

std::vector<Tensor> MasterWeights::of(std::span<const Tensor> parameters) {
  std::vector<Tensor> result;
  result.reserve(parameters.size());
  for (const Tensor& parameter : parameters) {
    Copy& copy = copies_[parameter.impl()];
    if (!copy.values.defined()) {
      copy.values = kernels::contiguous(kernels::cast(parameter, kFloat32));
    } else if (copy.version != parameter.version()) {
      const Tensor rounded = kernels::cast(copy.values, parameter.dtype());
      const Tensor same = kernels::compare(rounded, parameter, kernels::CompareOp::Equal);
      copy.values = kernels::where(same, copy.values, kernels::cast(parameter, kFloat32));
    }
    result.push_back(copy.values);
  }
  return result;
}

void MasterWeights::round_into(std::span<const Tensor> parameters) const {
  for (const Tensor& parameter : parameters)
    kernels::copy(parameter, copies_.at(parameter.impl()).values);
}

void MasterWeights::settle(const Tensor& parameter) { copies_.at(parameter.impl()).version = parameter.version(); }

Tensor MasterWeights::find(const Tensor& parameter) const {
  const auto found = copies_.find(parameter.impl());
  return found == copies_.end() ? Tensor() : found->second.values;
}

void MasterWeights::put(const Tensor& parameter, Tensor copy) { copies_[parameter.impl()] = {std::move(copy)}; }

}  // namespace brigade::optim::detail
