// Adds, finds, runs and replaces the items of a container; throws for a missing one.
#include <brigade/nn/container.h>

#include <brigade/nn/any_module.h>

#include <algorithm>

namespace brigade::nn {

namespace detail {

void throw_no_item(const std::string& container, const std::string& which, size_t size, const std::string& kind) {
  throw IndexError("{}: there is no {} {} among its {}", container, kind, which, size);
}

void throw_wrong_item(const std::string& container, const std::string& name, const Module& old, const Module& fresh) {
  throw ValueError("{}: '{}' is a {} and cannot be replaced by a {} here, since it would not know how to call it",
                   container, name, old.name(), fresh.name());
}

}  // namespace detail

SequentialImpl::SequentialImpl(const Named<AnyModule>& modules) {
  for (const auto& [name, module] : modules)
    push_back(name, module);
}

void SequentialImpl::push_back(const std::string& name, AnyModule module) {
  register_module(name, std::shared_ptr<Module>(module.ptr()));
  steps_.push_back(std::move(module));
  names_.push_back(name);
}

const AnyModule& SequentialImpl::operator[](size_t i) const {
  if (i >= steps_.size()) detail::throw_no_item("Sequential", std::to_string(i), steps_.size());
  return steps_[i];
}

Tensor SequentialImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  Tensor y = x;
  for (const AnyModule& step : steps_)
    y = step(y, where);
  return y;
}

AnyModule& SequentialImpl::step(const std::string& name) {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == name) return steps_[i];
  }
  throw ValueError("Sequential: '{}' is not one of its {} steps, so it cannot be replaced", name, steps_.size());
}

void SequentialImpl::replace_step(const std::string& name, AnyModule module, SourceLocation where) {
  AnyModule& step = this->step(name);
  const AnyModule old = std::exchange(step, module);
  try {
    Module::replace_module(name, std::shared_ptr<Module>(module.ptr()), where);
  } catch (...) {
    step = old;
    throw;
  }
}

void SequentialImpl::child_replaced(const std::string& name, const std::shared_ptr<Module>& module) {
  AnyModule& step = this->step(name);
  if (step.ptr() == module || step.rebind(module)) return;  // replace_step has put it there, or the types are equal
  throw ValueError(
      "Sequential: '{}' is a {} and cannot be replaced by a {} through the base class; call replace_module of "
      "the Sequential with the handle",
      name, step->name(), module->name());
}

namespace {
void require_defined(const char* container, const Tensor& item) {
  if (!item.defined()) throw ValueError("{}: the tensor is undefined", container);
}
}  // namespace

void ParameterListImpl::push_back(const Tensor& item, SourceLocation where) {
  require_defined("ParameterList", item);
  items_.push_back(register_parameter(std::to_string(items_.size()), item, true, where));
}

const Tensor& ParameterListImpl::operator[](size_t i) const {
  if (i >= items_.size()) detail::throw_no_item("ParameterList", std::to_string(i), items_.size(), "parameter");
  return items_[i];
}

void ParameterDictImpl::insert(const std::string& name, const Tensor& item, SourceLocation where) {
  require_defined("ParameterDict", item);
  items_.emplace_back(name, register_parameter(name, item, true, where));
}

bool ParameterDictImpl::contains(const std::string& name) const {
  return std::any_of(items_.begin(), items_.end(), [&](const auto& item) { return item.first == name; });
}

const Tensor& ParameterDictImpl::operator[](const std::string& name) const {
  for (const auto& [key, item] : items_) {
    if (key == name) return item;
  }
  detail::throw_no_item("ParameterDict", "'" + name + "'", items_.size(), "parameter");
}

// --- Replaces the held module with another one of the same type.

bool AnyModule::rebind(const std::shared_ptr<Module>& module) {
  // Compare the types of the objects, not of the pointers: the call casts down to the type of the old module.
  const Module& old = checked();
  const Module& fresh = *module;
  if (typeid(old) != typeid(fresh)) return false;
  impl_ = module;
  return true;
}

}  // namespace brigade::nn
