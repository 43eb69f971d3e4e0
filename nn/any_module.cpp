// Puts another module of the same type in the place of the one that is held.
#include <brigade/nn/any_module.h>

namespace brigade::nn {

bool AnyModule::rebind(const std::shared_ptr<Module>& module) {
  // typeid of the objects, not of the pointers: the call casts down to what the old one was.
  const Module& old = checked();
  const Module& fresh = *module;
  if (typeid(old) != typeid(fresh)) return false;
  impl_ = module;
  return true;
}

}  // namespace brigade::nn
