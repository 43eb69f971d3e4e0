// The scope of one module call: while it lives, the tape records operations under the module's path and type.
#pragma once

#include <brigade/autograd/tape.h>

#include <optional>
#include <typeinfo>

namespace brigade::nn {

class Module;

// Both ways of calling a layer open it: the handle (`fc(x)`) and the built-in layers' forward (`fc->forward(x)`). The
// second of the two finds that the module is already the innermost one and does nothing, so that one call leaves one
// record. Costs two words of thread-local memory when the tape is off.
class CallScope {
 public:
  CallScope(const Module& module, SourceLocation where);
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  const Module* outer_;
  std::optional<autograd::ScopeGuard> scope_;
};

// "Linear" for brigade::nn::LinearImpl, "ModuleList" for ModuleListImpl<Linear>: without
// namespaces, enclosing functions, template arguments and "Impl". Interned.
const char* readable_type_name(const std::type_info& type);

}  // namespace brigade::nn
