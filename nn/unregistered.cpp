// A module used in another's forward but registered nowhere: the warning, and the id by which the tape knows the
// module.
#include <brigade/autograd/grad_mode.h>
#include <brigade/core/warning.h>
#include <brigade/nn/module.h>

#include <algorithm>

namespace brigade::nn {

// No module lists the parameters of such a module, so no optimizer steps them and no reducer averages them. It is not a
// mistake if nothing would be trained (under no_grad, or when everything is frozen), or if its parameters were
// requested separately (a network with its own optimizer).
void Module::warn_if_unregistered(const Module& caller, SourceLocation where) const {
  if (!autograd::GradMode::is_enabled()) return;
  const Named<Tensor> parameters = list_parameters(true, "");
  const auto trained = std::count_if(parameters.begin(), parameters.end(),
                                     [](const auto& parameter) { return parameter.second.requires_grad(); });
  if (trained == 0) return;
  accounted_for_.store(true, std::memory_order_relaxed);
  const std::string made = made_at_.line() == 0 ? "" : ", made at " + to_string(made_at_) + ",";
  warn({"the module " + name() + made + " is called in the forward of " + caller.name() + " (" + to_string(where) +
            "), but is registered in no module: its " + std::to_string(trained) +
            " parameters are not in parameters(), so no optimizer moves them and no reducer averages them",
        "register it in the constructor of " + caller.name() +
            ": name = register_module(\"name\", ...); if it is not to be trained, freeze it (requires_grad_(false)) or "
            "call it under no_grad"});
}

uint64_t Module::first_trained() const {
  const Named<Tensor> parameters = list_parameters(true, "");
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [](const auto& parameter) { return parameter.second.requires_grad(); });
  return found == parameters.end() ? 0 : found->second.id();
}

}  // namespace brigade::nn
