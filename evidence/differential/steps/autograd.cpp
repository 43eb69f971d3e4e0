// Steps that act on the graph: leaves, detach, grad modes, hooks, backward.
#include "differential/step.h"

#include <brigade/autograd/backward.h>
#include <brigade/autograd/ops/arithmetic.h>

namespace brigade::differential {
namespace {

Tensor gradient_of_call(const Call& call) {
  return call.args.has("gradient") ? call.session.variables.at(call.args.text("gradient")) : Tensor();
}

Outputs run_backward(const Call& call) {
  call.in[0].backward({.gradient = gradient_of_call(call),
                       .retain_graph = call.args.flag("retain_graph", false),
                       .create_graph = call.args.flag("create_graph", false)});
  return std::vector<Tensor>();
}

// Gradients of the first input with respect to the others.
Outputs run_grad(const Call& call) {
  autograd::GradOptions options{.retain_graph = call.args.flag("retain_graph", false),
                                .allow_unused = call.args.flag("allow_unused", false),
                                .create_graph = call.args.flag("create_graph", false),
                                .materialize_grads = call.args.flag("materialize_grads", false)};
  if (call.args.has("gradient")) options.grad_outputs = {gradient_of_call(call)};
  const Tensor& output = call.in[0];
  const std::vector<Tensor>& all = call.in.all();
  return autograd::grad(output, std::span(all).subspan(1), options);
}

const AddSteps add_autograd{
    {"requires_grad_",
     [](const Call& call) -> Outputs { return call.in[0].requires_grad_(call.args.flag("requires_grad", true)); }},
    {"detach", [](const Call& call) -> Outputs { return call.in[0].detach(); }},
    {"retain_grad",
     [](const Call& call) -> Outputs {
       call.in[0].retain_grad();
       return std::vector<Tensor>();
     }},
    // The hook multiplies the gradient by a number.
    {"register_hook",
     [](const Call& call) -> Outputs {
       call.in[0].register_hook([factor = call.args.number("factor")](const Tensor& grad) { return grad * factor; });
       return std::vector<Tensor>();
     }},
    {"grad_of", [](const Call& call) -> Outputs { return call.in[0].grad(); }},
    {"zero_grad",
     [](const Call& call) -> Outputs {
       call.in[0].set_grad({});
       return std::vector<Tensor>();
     }},
    {"set_grad_enabled",
     [](const Call& call) -> Outputs {
       call.session.grad_modes.push_back(std::make_unique<AutoGradMode>(call.args.flag("mode")));
       return std::vector<Tensor>();
     }},
    // Restores the mode from before the last set_grad_enabled.
    {"restore_grad_mode",
     [](const Call& call) -> Outputs {
       if (!call.session.grad_modes.empty()) call.session.grad_modes.pop_back();
       return std::vector<Tensor>();
     }},
    {"backward", &run_backward},
    {"grad", &run_grad},
};

}  // namespace
}  // namespace brigade::differential
