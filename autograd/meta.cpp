// Creates autograd's state of a tensor on first use, and changes gradients of leaves and their targets.
#include <brigade/autograd/meta.h>

#include <brigade/autograd/listener.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/core/warning.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::autograd {

bool AutogradMeta::adopt_target() {
  if (grad.defined() && !grad.is_same(grad_target)) {
    kernels::copy(grad_target, grad);
    grad = grad_target;
  }
  return grad.defined();
}

void AutogradMeta::take_target() {
  grad = grad_target;
  grad.bump_version();
}

namespace {

// Warns once per line and process.
void warn_of_lost_history(SourceLocation where) {
  warn(
      {"backward with create_graph at " + to_string(where) +
           ": gradients that live in the buckets of a wrapper (gradient_as_bucket_view) have no history, so no second "
           "derivative goes through them",
       "take the first derivative by autograd::grad with create_graph, and reduce by a backward of what is made of it"});
}

}  // namespace

void AutogradMeta::accumulate(Tensor gradient, bool create_graph, SourceLocation where) {
  if (grad_target.defined()) {
    if (create_graph) warn_of_lost_history(where);
    if (adopt_target()) {
      kernels::add_inplace(grad_target, gradient, 1.0);
    } else {
      kernels::copy(grad_target, gradient);
    }
    take_target();
  } else if (create_graph) {
    grad = grad.defined() ? add(grad, gradient, where) : std::move(gradient);
  } else if (grad.defined()) {
    kernels::add_inplace(grad, gradient, 1.0);
    grad.bump_version();
  } else {
    grad = is_exclusive(gradient) ? std::move(gradient) : kernels::clone(gradient);
  }
}

void AutogradMeta::set_by_hand(const Tensor& gradient, SourceLocation where) {
  grad = gradient;
  stamp = {};
  stamp.by_hand = gradient.defined();
  if (gradient.defined()) stamp.scale.on_set(gradient);
  if (gradient.defined() && !observers.empty()) gradient.storage()->watch();
  stamp.set_at = where;
}

AutogradMeta& ensure_meta(const Tensor& tensor) {
  auto& slot = tensor.impl()->autograd;
  if (!slot) slot = std::make_unique<AutogradMeta>();
  return static_cast<AutogradMeta&>(*slot);
}

void observe(const Tensor& leaf, Listener& listener, uint32_t tag) {
  if (!leaf.is_leaf()) {
    throw AutogradError("only leaves can be observed, got a result of {}", grad_fn(leaf)->name());
  }
  ensure_meta(leaf).observers.push_back({&listener, tag});
}

void stop_observing(const Tensor& leaf, Listener& listener) noexcept {
  if (AutogradMeta* known = meta(leaf)) {
    std::erase_if(known->observers, [&](const auto& observer) { return observer.listener == &listener; });
  }
}

void set_grad_target(const Tensor& leaf, const Tensor& target) {
  if (target.defined() && (target.sizes() != leaf.sizes() || target.dtype() != leaf.dtype())) {
    throw ShapeError("a gradient target must look like its leaf: expected {}, got {}", describe(leaf),
                     describe(target));
  }
  ensure_meta(leaf).grad_target = target;
}

Tensor grad_target(const Tensor& leaf) {
  const AutogradMeta* known = meta(leaf);
  return known ? known->grad_target : Tensor();
}

}  // namespace brigade::autograd
