// Keeps, per thread, where gradients stopped in the latest backward.
#include <brigade/autograd/detail/stopped_gradients.h>

#include <brigade/core/tensor.h>

namespace brigade::autograd::detail {

void StoppedGradients::note(const Node& node, uint32_t input) {
  const Edge& edge = node.edges[input];
  StoppedGradient& stopped = all.emplace_back(StoppedGradient{node.op, node.where, node.sequence, input});
  if (edge.leaf) {
    stopped.leaf = Tensor(edge.leaf).id();
  } else {
    stopped.producer = edge.node->sequence;
  }
}

std::optional<double> first_number(const Tensor& gradient) {
  if (gradient.device() != Device() || !is_floating_point(gradient.dtype())) return std::nullopt;
  for (int64_t i = 0; i < gradient.numel(); ++i) {
    const double value = brigade::detail::element_as_double(gradient, i);
    if (value != 0) return value;
  }
  return std::nullopt;
}

StoppedGradients& stopped_gradients() noexcept {
  thread_local StoppedGradients stopped;
  return stopped;
}

}  // namespace brigade::autograd::detail
