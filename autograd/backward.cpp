// Checks the arguments of backward() and grad() and their roots, runs the engine, and reports missing gradients.
#include <brigade/autograd/backward.h>

#include <brigade/autograd/detail/findings.h>
#include <brigade/autograd/engine.h>
#include <brigade/autograd/tape_query.h>
#include <brigade/kernels/factory.h>

namespace brigade::autograd {

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

std::vector<Tensor> grad(TensorList outputs, TensorList inputs, const GradOptions& options, SourceLocation where) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].requires_grad()) continue;
    throw AutogradError(where, "One of the differentiated Tensors does not require grad: input {} ({})", i,
                        inputs[i].defined() ? describe(inputs[i]) : "undefined");
  }
  if (!options.grad_outputs.empty() && options.grad_outputs.size() != outputs.size()) {
    throw AutogradError(where, "grad: got {} outputs and {} grad_outputs; give one for each output, or none",
                        outputs.size(), options.grad_outputs.size());
  }
  std::vector<Tensor> gradients =
      Engine(outputs, options.grad_outputs, {options.retain_graph, options.create_graph}, where).run_captured(inputs);
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined() && options.materialize_grads) {
      gradients[i] = full(inputs[i].sizes(), 0.0, inputs[i].options());
      if (options.create_graph) gradients[i].requires_grad_(true, where);  // can be differentiated, as the others can
    }
    if (gradients[i].defined() || options.allow_unused) continue;
    throw AutogradError(
        where,
        "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this "
        "is the desired behavior. It is input {} ({})",
        i, describe(inputs[i]));
  }
  return gradients;
}

void backward(TensorList roots, TensorList gradients, const GraphUse& use, SourceLocation where) {
  if (!gradients.empty() && gradients.size() != roots.size()) {
    throw AutogradError(where, "backward: got {} roots and {} gradients; give one for each root, or none", roots.size(),
                        gradients.size());
  }
  Engine(roots, gradients, use, where).run();
}

}  // namespace brigade::autograd
