// The checks of the engine before and during a run.
#include <brigade/autograd/detail/frozen_leaves.h>
#include <brigade/autograd/detail/non_finite.h>
#include <brigade/autograd/detail/stopped_gradients.h>
#include <brigade/autograd/engine.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/tape_query.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/reduce.h>

namespace brigade::autograd {

namespace {

bool has_numbers(const Tensor& tensor) {
  return tensor.defined() && is_floating_point(tensor.dtype()) && tensor.numel() > 0;
}

bool finite(const Tensor& tensor) {
  if (!has_numbers(tensor)) return true;
  // Zero times every element is zero, unless one is not finite.
  const Tensor products = kernels::binary_scalar(kernels::contiguous(tensor), 0.0, kernels::BinaryOp::Mul, false);
  return brigade::detail::element_as_double(kernels::sum(products, {}), 0) == 0;
}

bool has_nan(const Tensor& tensor) {
  if (!has_numbers(tensor)) return false;
  const Tensor different = kernels::compare(tensor, tensor, kernels::CompareOp::NotEqual);
  return brigade::detail::element_as_double(kernels::sum(kernels::cast(different, kFloat32), {}), 0) > 0;
}

}  // namespace

void Engine::check_roots() {
  detail::leaves_of_refused_root().clear();
  for (size_t i = 0; i < roots_.size(); ++i) {
    const Tensor& root = roots_[i];
    if (!root.defined()) throw AutogradError(where_, "backward: element {} of tensors is undefined", i);
    if (!root.requires_grad()) {
      const auto [cut, leaves] = explain_missing_history(root);
      detail::leaves_of_refused_root() = leaves;
      throw AutogradError(where_,
                          "element {} of tensors does not require grad and does not have a grad_fn{}{}; backward "
                          "called at {}",
                          i, cut.empty() ? "" : ": ", cut, to_string(where_));
    }
    Tensor& gradient = gradients_[i];
    if (!gradient.defined()) {
      if (root.numel() != 1) {
        throw AutogradError(where_,
                            "grad can be implicitly created only for scalar outputs; got a root {}. Reduce it (sum, "
                            "mean) or pass a gradient; backward called at {}",
                            describe(root), to_string(where_));
      }
      gradient = full(root.sizes(), 1.0, root.options());
    } else if (gradient.sizes() != root.sizes()) {
      throw AutogradError(where_,
                          "Mismatch in shape: grad_output[{}] has a shape of {} and output[{}] has a shape of {}.", i,
                          gradient.sizes(), i, root.sizes());
    } else if (gradient.dtype() != root.dtype()) {
      gradient = gradient.to(root.dtype(), where_);
    }
  }
}

void Engine::check_not_freed(const Node& node) const {
  if (!node.is_freed()) return;
  throw AutogradError(
      where_,
      "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
      "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
      "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
      "saved tensors after calling backward. The operation is '{}' recorded at {}, freed by the backward at {}; this "
      "backward is at {}",
      node.op, to_string(node.where), to_string(node.freed_by()), to_string(where_));
}

Tensor Engine::result_of(const Node& node, uint32_t input) const {
  if (results_[input].defined() || !node.edges[input].leaf) return results_[input];
  // The gradient may have been written directly to its destination.
  return static_cast<AutogradMeta*>(node.edges[input].leaf->autograd.get())->grad;
}

void Engine::look_for_non_finite(const Node& node, const Tensor* grads) {
  for (uint32_t i = 0; i < node.outputs.size(); ++i) {
    if (!finite(grads[i])) return;  // it arrived non-finite
  }
  for (uint32_t i = 0; i < node.edges.size(); ++i) {
    const Tensor result = result_of(node, i);
    if (finite(result)) continue;
    for (Listener* listener : non_finite_listeners_)
      listener->on_non_finite(node.op, node.where, result.dtype());
    non_finite_listeners_.clear();
    return;
  }
}

void Engine::look_at_unbounded(const Node& node, const Tensor* grads) const {
  detail::StoppedGradients& noticed = detail::stopped_gradients();
  if (noticed.non_finite_op || !(node.is_custom() || detail::has_unbounded_derivative(node.op))) return;
  for (uint32_t i = 0; i < node.edges.size(); ++i) {
    if (!detail::holds_non_finite(result_of(node, i))) continue;
    for (uint32_t k = 0; k < node.outputs.size(); ++k) {
      if (detail::holds_non_finite(grads[k])) return;  // it arrived non-finite
    }
    noticed.non_finite_op = node.op;
    noticed.non_finite_at = node.where;
    return;
  }
}

void Engine::look_for_nan(const Node& node, const Tensor* grads) {
  for (uint32_t i = 0; i < node.outputs.size(); ++i) {
    if (has_nan(grads[i])) return;  // it arrived with a NaN
  }
  for (uint32_t i = 0; i < node.edges.size(); ++i) {
    if (!node.edges[i].defined() || !has_nan(result_of(node, i))) continue;
    throw AutogradError(node.where,
                        "Function '{}' returned nan values in its {}th output. The forward call is '{}' at {}; its "
                        "gradients by its results have no nan. Look at the values it was called with there",
                        node.name(), i, node.op, to_string(node.where));
  }
}

}  // namespace brigade::autograd
