// The methods of Tensor about leaves, gradients and history.
#include <brigade/autograd/backward.h>
#include <brigade/autograd/detail/findings.h>
#include <brigade/autograd/engine.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/record.h>
#include <brigade/autograd/tape.h>
#include <brigade/core/view.h>

#include <algorithm>

namespace brigade {

using namespace autograd;

const Tensor& Tensor::requires_grad_(bool requires_grad, SourceLocation where) const {
  if (!is_leaf()) {
    if (requires_grad) return *this;
    throw AutogradError(where,
                        "you can only change requires_grad flags of leaf variables. Got a result of {}; use detach() "
                        "to get a tensor that does not require grad",
                        autograd::grad_fn(*this)->name());
  }
  if (requires_grad && !is_floating_point(dtype())) {
    throw DTypeError(where,
                     "only Tensors of floating point dtype can require gradients, got {}; convert with .to(kFloat32) "
                     "first",
                     name(dtype()));
  }
  AutogradMeta& known = ensure_meta(*this);
  if (impl_->requires_grad != requires_grad) {
    known.requires_grad_set_at = where;
    if (requires_grad) {
      autograd::detail::note_thawed(*this);
    } else {
      autograd::detail::note_frozen(*this, where);
    }
  }
  impl_->requires_grad = requires_grad;
  return *this;
}

Tensor Tensor::grad() const {
  const AutogradMeta* known = meta(*this);
  if (!known) return Tensor();
  if (!is_leaf()) return known->retained ? *known->retained : Tensor();
  return known->grad;
}

void Tensor::set_grad(const Tensor& grad, SourceLocation where) const {
  if (grad.defined()) {
    if (grad.sizes() != sizes()) {
      throw ShapeError(where, "set_grad: the gradient must have the shape of the tensor: expected {}, got {}", sizes(),
                       grad.sizes());
    }
    if (grad.dtype() != dtype()) {
      throw DTypeError(where, "set_grad: the gradient must have the dtype of the tensor: expected {}, got {}",
                       brigade::name(dtype()), brigade::name(grad.dtype()));
    }
    if (grad.device() != device()) {
      throw DeviceError(where, "set_grad: the gradient must be on the device of the tensor: expected {}, got {}",
                        device(), grad.device());
    }
  }
  AutogradMeta& known = ensure_meta(*this);
  if (known.retained) *known.retained = grad;
  known.set_by_hand(grad, where);
}

void Tensor::retain_grad() const {
  if (!requires_grad()) throw AutogradError("can't retain_grad on Tensor that has requires_grad=False");
  if (is_leaf()) return;
  AutogradMeta& known = ensure_meta(*this);
  if (known.retained) return;
  known.retained = std::make_shared<Tensor>();
  known.retained_by = autograd::Engine::next_number();
  // The hook must not keep the tensor alive, since the tensor keeps the node alive: it holds the
  // slot only.
  auto& hooks = autograd::grad_fn(*this)->output_hooks;
  if (!hooks) hooks = std::make_unique<std::vector<autograd::Node::OutputHook>>();
  hooks->push_back({impl_->output_nr, known.retained_by, [slot = known.retained](const Tensor& gradient) {
                      *slot = slot->defined() ? add(*slot, gradient, {}) : gradient.clone({});
                      return Tensor();
                    }});
}

uint64_t Tensor::register_hook(std::function<Tensor(const Tensor&)> hook, SourceLocation where) const {
  if (!requires_grad()) throw AutogradError("cannot register a hook on a variable that doesn't require gradient");
  const uint64_t handle = autograd::Engine::next_number();
  if (autograd::Node* node = autograd::grad_fn(*this)) {
    auto& hooks = node->output_hooks;
    if (!hooks) hooks = std::make_unique<std::vector<autograd::Node::OutputHook>>();
    // Insert before the hook of retain_grad(), which keeps the gradient after all other hooks.
    const AutogradMeta* const known = meta(*this);
    const auto retains = [&](const auto& each) {
      return known && known->retained && each.handle == known->retained_by;
    };
    hooks->insert(std::find_if(hooks->begin(), hooks->end(), retains), {impl_->output_nr, handle, std::move(hook)});
  } else {
    ensure_meta(*this).hooks.push_back({handle, std::move(hook), where});
  }
  return handle;
}

uint64_t Tensor::register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook,
                                                    SourceLocation where) const {
  if (!requires_grad()) throw AutogradError("cannot register a hook on a variable that doesn't require gradient");
  if (!is_leaf()) {
    throw AutogradError(where,
                        "post accumulate grad hooks cannot be registered on non-leaf tensors. Got a result of {}; use "
                        "register_hook",
                        autograd::grad_fn(*this)->name());
  }
  const uint64_t handle = autograd::Engine::next_number();
  ensure_meta(*this).post_accumulate_hooks.push_back({handle, std::move(hook), where});
  return handle;
}

void Tensor::remove_hook(uint64_t handle) const {
  const auto matches = [handle](const auto& hook) { return hook.handle == handle; };
  if (AutogradMeta* known = meta(*this)) {
    std::erase_if(known->hooks, matches);
    std::erase_if(known->post_accumulate_hooks, matches);
  }
  autograd::Node* const node = autograd::grad_fn(*this);
  if (node && node->output_hooks) std::erase_if(*node->output_hooks, matches);
}

void Tensor::backward(SourceLocation where) const { backward(BackwardOptions{}, where); }

void Tensor::backward(const BackwardOptions& options, SourceLocation where) const {
  autograd::backward(std::span(this, 1), std::span(&options.gradient, options.gradient.defined() ? 1 : 0),
                     {options.retain_graph, options.create_graph}, where);
}

Tensor Tensor::detach(SourceLocation where) const {
  Tensor result = view::alias(*this);
  if (autograd::Tape* tape = autograd::Tape::current()) {
    const Tensor* in[] = {this};
    const Tensor* out[] = {&result};
    const autograd::Cut cut = requires_grad() ? autograd::Cut::Detach : autograd::Cut::None;
    tape->append("detach", where, in, out, cut, where);
  } else if (requires_grad() && !autograd::Tape::is_kept()) {
    autograd::detail::note_early_detach(*this, result, where);
  }
  return result;
}

}  // namespace brigade
