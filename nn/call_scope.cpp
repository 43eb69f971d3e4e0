// Enters and leaves a module's call, and makes the readable name of a type.
#include <brigade/nn/call_scope.h>

#include <brigade/autograd/tape.h>
#include <brigade/nn/module.h>

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

}  // namespace brigade::nn
