// Notes, per thread, where gradients stopped in the latest backward: at a node that returned nothing, or at a hook that
// emptied the gradient of a leaf.
#include <brigade/autograd/detail/findings.h>

#include <brigade/autograd/engine_observer.h>
#include <brigade/autograd/tape.h>

#include <cmath>
#include <optional>

namespace brigade::autograd {
namespace {

// The first nonzero element; nothing if all are zero, or on a device, where reading would wait.
std::optional<double> first_number(const Tensor& gradient) {
  if (gradient.device() != Device() || !is_floating_point(gradient.dtype())) return std::nullopt;
  for (int64_t i = 0; i < gradient.numel(); ++i) {
    const double value = brigade::detail::element_as_double(gradient, i);
    if (value != 0) return value;
  }
  return std::nullopt;
}

class StoppedGradientsObserver final : public EngineObserver {
 public:
  void on_stopped(const Node& node, uint32_t input) override {
    const Edge& edge = node.edges[input];
    detail::StoppedGradient& stopped = detail::stopped_gradients().all.emplace_back(
        detail::StoppedGradient{node.op, node.where, node.sequence, input});
    if (edge.leaf) {
      stopped.leaf = Tensor(edge.leaf).id();
    } else {
      stopped.producer = edge.node->sequence;
    }
  }

  void on_leaf_hook(const Tensor& gradient) override { held_ = first_number(gradient); }
  void on_changing_hook(const Tensor& leaf, SourceLocation hook, const Tensor& gradient) override {
    if (held_ && std::isfinite(*held_) && !first_number(gradient))
      detail::stopped_gradients().emptied.push_back({leaf.id(), hook});
  }

 private:
  std::optional<double> held_;  // what the gradient held before the hook
};

}  // namespace

std::unique_ptr<EngineObserver> make_stopped_gradients(const ObservedRun&) {
  return Tape::is_kept() ? std::make_unique<StoppedGradientsObserver>() : nullptr;
}

detail::StoppedGradients& detail::stopped_gradients() noexcept {
  thread_local StoppedGradients stopped;
  return stopped;
}

}  // namespace brigade::autograd
