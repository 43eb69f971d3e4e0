// Keeps, per thread, where gradients stopped in the latest backward.
#include <brigade/autograd/detail/stopped_gradients.h>

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

StoppedGradients& stopped_gradients() noexcept {
  thread_local StoppedGradients stopped;
  return stopped;
}

}  // namespace brigade::autograd::detail
