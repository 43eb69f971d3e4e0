// Anomaly mode: the observer of a backward that looks for a NaN.
#include <brigade/autograd/detail/findings.h>
#include <brigade/autograd/engine_observer.h>
#include <brigade/autograd/grad_mode.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/reduce.h>

#include <algorithm>

namespace brigade::autograd {

namespace {

bool has_nan(const Tensor& tensor) {
  if (!tensor.defined() || !is_floating_point(tensor.dtype()) || tensor.numel() == 0) return false;
  const Tensor different = kernels::compare(tensor, tensor, kernels::CompareOp::NotEqual);
  return brigade::detail::element_as_double(kernels::sum(kernels::cast(different, kFloat32), {}), 0) > 0;
}

class AnomalySearch final : public EngineObserver {
  void on_node_run(const Node& node, std::span<const Tensor> gradients, std::span<const Tensor> results) override {
    if (std::ranges::any_of(gradients, has_nan)) return;  // it arrived with a NaN
    for (uint32_t i = 0; i < node.edges.size(); ++i) {
      if (!node.edges[i].defined() || !has_nan(detail::result_of(node, results, i))) continue;
      throw AutogradError(node.where,
                          "Function '{}' returned nan values in its {}th output. The forward call is '{}' at {}; its "
                          "gradients by its results have no nan. Look at the values it was called with there",
                          node.name(), i, node.op, to_string(node.where));
    }
  }
};

}  // namespace

std::unique_ptr<EngineObserver> make_anomaly_search(const ObservedRun&) {
  return AnomalyMode::is_enabled() ? std::make_unique<AnomalySearch>() : nullptr;
}

}  // namespace brigade::autograd
