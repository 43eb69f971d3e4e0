// What autograd knows about one tensor.
#pragma once

#include <brigade/autograd/node.h>

namespace brigade::autograd {

class Listener;

struct AutogradMeta final : AutogradMetaBase {
  // A result: the node that made it.
  NodePtr grad_fn;
  uint32_t output = 0;
  // Where retain_grad() keeps the gradient of a result.
  std::shared_ptr<Tensor> retained;

  // A leaf: its gradient.
  Tensor grad;
  // Memory in which the gradient is to live (a view of a DDP bucket). When it is set, `grad` is either undefined or,
  // after the first contribution, this very tensor.
  Tensor grad_target;
  // The line that last switched requires_grad, and the line that last replaced the gradient by hand.
  SourceLocation requires_grad_set_at;
  SourceLocation grad_set_at;
  struct Hook {
    uint64_t handle;
    std::function<Tensor(const Tensor&)> call;
  };
  std::vector<Hook> hooks;
  // Who wants to know when this leaf's gradient is complete; the tag is the listener's own name for the leaf.
  struct Observer {
    Listener* listener;
    uint32_t tag;
  };
  std::vector<Observer> observers;

  // Place of this leaf in the backward that is running (0: none).
  uint64_t task = 0;
  uint32_t task_index = 0;
};

// The meta of a tensor, nullptr when it has none.
inline AutogradMeta* meta(const Tensor& tensor) noexcept {
  return static_cast<AutogradMeta*>(tensor.impl()->autograd.get());
}
// Made when missing.
AutogradMeta& ensure_meta(const Tensor& tensor);

}  // namespace brigade::autograd
