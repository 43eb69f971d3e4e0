// Replaces the held module with another one of the same type.
#include <brigade/nn/any_module.h>

namespace brigade::nn {

bool AnyModule::rebind(const std::shared_ptr<Module>& module) {
  // Compare the types of the objects, not of the pointers: the call casts down to the type of the old module.
  const Module& old = checked();
  const Module& fresh = *module;
  if (typeid(old) != typeid(fresh)) return false;
  impl_ = module;
  return true;
}

}  // namespace brigade::nn
