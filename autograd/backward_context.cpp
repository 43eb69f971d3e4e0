// The services that the engine offers to a node's backward.
#include <brigade/autograd/engine.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/kernels/factory.h>

#include <utility>

namespace brigade::autograd {

Tensor BackwardContext::grad_or_zeros(uint32_t i) const {
  if (grads_[i].defined()) return grads_[i];
  const OutputInfo& info = node_.outputs[i];
  return full(info.sizes, 0.0, {info.dtype, info.device});
}

Tensor BackwardContext::fit(const Edge& edge, Tensor grad) {
  const OutputInfo like = edge.node ? edge.node->outputs[edge.output]
                                    : OutputInfo{edge.leaf->sizes, edge.leaf->dtype, edge.leaf->storage->device()};
  if (grad.sizes() != like.sizes) grad = sum_to(grad, like.sizes, {});
  if (grad.dtype() != like.dtype) grad = grad.to(like.dtype, {});
  if (grad.device() != like.device) grad = grad.to(like.device, {});
  return grad;
}

BackwardContext::Destination BackwardContext::destination(uint32_t i) const {
  if (!needs_input_grad(i) || !node_.edges[i].leaf || engine_.capturing_ || engine_.create_graph_) return {};
  // If the same leaf appears twice among the inputs (x @ x), the second gradient could overwrite the first, which is
  // not delivered yet.
  for (uint32_t other = 0; other < node_.edges.size(); ++other) {
    if (other != i && node_.edges[other].leaf == node_.edges[i].leaf) return {};
  }
  AutogradMeta& leaf_meta = *static_cast<AutogradMeta*>(node_.edges[i].leaf->autograd.get());
  // The gradient of a frozen leaf is dropped on delivery.
  if (!node_.edges[i].leaf->requires_grad || !leaf_meta.grad_target.defined() || !leaf_meta.hooks.empty()) return {};
  const bool holds = leaf_meta.adopt_target();
  return {leaf_meta.grad_target, holds};
}

void BackwardContext::hand_over(uint32_t i, const Destination& to, Tensor result) {
  if (!result.defined()) return set(i, {});
  if (!to.out.defined()) return set_fitted(i, std::move(result));
  AutogradMeta& leaf_meta = *static_cast<AutogradMeta*>(node_.edges[i].leaf->autograd.get());
  leaf_meta.take_target();
  engine_.graph_.planned_leaf(*node_.edges[i].leaf).received = true;
}

void BackwardContext::fail_at_end(const AutogradError& error) {
  if (!engine_.failure_) engine_.failure_ = std::make_exception_ptr(error);
}

void BackwardContext::run_inside(Node& inner, const Tensor* grads, std::vector<Tensor>& results) {
  BackwardContext context(engine_, inner, grads, results);
  inner.backward(context);
}

}  // namespace brigade::autograd
