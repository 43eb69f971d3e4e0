// Enters and leaves a module's call, and makes the readable name of a type.
#include <brigade/nn/call_scope.h>

#include <brigade/autograd/grad_mode.h>
#include <brigade/autograd/tape.h>
#include <brigade/core/warning.h>
#include <brigade/nn/module.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include <cxxabi.h>

namespace brigade::nn {
namespace {
// The module whose call is running on this thread.
thread_local const Module* innermost = nullptr;
}  // namespace

CallScope::CallScope(const Module& module, SourceLocation where) : outer_(innermost) {
  if (innermost == &module) return;
  if (outer_ && !module.parent_ && !module.accounted_for_.load(std::memory_order_relaxed)) [[unlikely]]
    module.warn_if_unregistered(*outer_, where);
  // Path and type are costly to find, and only a tape needs them.
  if (autograd::Tape::current()) {
    const bool is_outside = outer_ && !module.parent_;
    scope_.emplace(&module.path(), module.type_name(), where, &module, is_outside ? module.first_trained() : 0);
  }
  innermost = &module;
}

CallScope::~CallScope() { innermost = outer_; }

const char* readable_type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                         std::free);
  std::string text = status == 0 ? demangled.get() : type.name();
  // Removes the trailing template arguments, nested ones included.
  if (text.ends_with('>')) {
    size_t open = text.size() - 1;
    for (int depth = 1; depth > 0 && open > 0;) {
      --open;
      if (text[open] == '>') ++depth;
      if (text[open] == '<') --depth;
    }
    text.resize(open);
  }
  if (const size_t colon = text.rfind("::"); colon != std::string::npos) text.erase(0, colon + 2);
  if (text.size() > 4 && text.ends_with("Impl")) text.resize(text.size() - 4);
  return autograd::intern(text)->c_str();
}

// --- A module used in another's forward but registered nowhere: the warning, and the id by which the tape knows the
// module.

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
  warn({"The module " + name() + made + " is called in the forward of " + caller.name() + " (" + to_string(where) +
            "), but is registered in no module.\nwhy: its " + std::to_string(trained) +
            " parameters are not in parameters(), so no optimizer moves them and no reducer averages them.",
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
