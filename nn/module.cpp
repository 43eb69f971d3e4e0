// The module tree: building it, names and paths, walking it.
#include <brigade/nn/module.h>

#include <brigade/autograd/meta.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <string_view>

namespace brigade::nn {

namespace detail {

void throw_empty_handle(const std::type_info& impl) {
  throw ValueError(
      "an empty handle of type {} was used; assign it (register_module) in the constructor of the module that owns it",
      readable_type_name(impl));
}

}  // namespace detail

namespace {

// Whether a line is in one of this library's layers, not in the user's code.
bool is_in_library(const SourceLocation& where) noexcept {
  constexpr std::string_view kHere = "nn/module.cpp";
  std::string_view root = SourceLocation::current().file_name();
  root.remove_suffix(root.ends_with(kHere) ? kHere.size() : 0);
  const std::string_view file = where.file_name();
  const bool is_source = file.starts_with(root) && file.substr(root.size()).starts_with("nn/");
  return is_source || file.find("/brigade/nn/") != std::string_view::npos;
}

}  // namespace

void Module::note_made_at(SourceLocation where) noexcept {
  if (made_at_.line() == 0) made_at_ = where;
  if (where.line() == 0 || is_in_library(where)) return;
  // Do not call parameters(), which would count as a request for them (warn_if_unregistered).
  for (const auto& [name, parameter] : list_parameters(true, "")) {
    autograd::AutogradMeta* const meta = autograd::meta(parameter);
    if (!meta || !is_in_library(meta->registered_at)) continue;
    meta->registered_at = where;
    if (is_in_library(meta->requires_grad_set_at)) meta->requires_grad_set_at = where;
  }
}

Module::~Module() {
  for (const auto& [name, parameter] : parameters_)
    --autograd::meta(parameter)->held_by_modules;
  for (const auto& [name, child] : children_)
    disown(*child);
}

void Module::check_name(const std::string& name, const char* kind) const {
  if (name.empty()) throw ValueError("{} name must not be empty (in module {})", kind, this->name());
  if (name.find('.') != std::string::npos)
    throw ValueError("{} name must not contain a dot (got '{}') (in module {})", kind, name, this->name());
  const auto taken = [&](const auto& list, const char* as) {
    const bool found = std::any_of(list.begin(), list.end(), [&](const auto& each) { return each.first == name; });
    if (!found) return;
    throw ValueError("{} '{}' already defined, as a {}; choose another name (in module {})", kind, name, as,
                     this->name());
  };
  taken(parameters_, "parameter");
  taken(buffers_, "buffer");
  taken(children_, "submodule");
}

Tensor Module::register_parameter(const std::string& name, Tensor tensor, bool requires_grad, SourceLocation where) {
  check_name(name, "Parameter");
  if (!tensor.defined()) return tensor;
  if (!tensor.is_leaf()) {
    throw AutogradError(
        where,
        "Cannot assign non-leaf Tensor to parameter '{}' (in module {}): it is the result of an operation; use "
        "detach() or clone under no_grad",
        name, this->name());
  }
  tensor.requires_grad_(requires_grad, where);
  autograd::AutogradMeta& meta = autograd::ensure_meta(tensor);
  meta.registered_at = where;
  meta.registered_as = name;
  ++meta.held_by_modules;
  parameters_.emplace_back(name, tensor);
  return tensor;
}

Tensor Module::replace_parameter(const std::string& name, Tensor tensor, SourceLocation where) {
  const auto found =
      std::find_if(parameters_.begin(), parameters_.end(), [&](const auto& each) { return each.first == name; });
  if (found == parameters_.end()) {
    throw ValueError("Parameter with name '{}' is not defined (in module {}); register_parameter adds a new one", name,
                     this->name());
  }
  if (!tensor.defined() || tensor.sizes() != found->second.sizes()) {
    throw ShapeError(where, "Parameter '{}' (in module {}) is {} and cannot become {}", name, this->name(),
                     describe(found->second), describe(tensor));
  }
  if (!tensor.is_leaf()) {
    throw AutogradError(
        where, "Cannot assign non-leaf Tensor to parameter '{}' (in module {}): it is the result of an operation", name,
        this->name());
  }
  --autograd::meta(found->second)->held_by_modules;
  found->second = tensor;
  autograd::AutogradMeta& meta = autograd::ensure_meta(tensor);
  ++meta.held_by_modules;
  meta.registered_at = where;
  meta.registered_as = name;
  return tensor;
}

Tensor Module::register_buffer(const std::string& name, Tensor tensor) {
  check_name(name, "Buffer");
  if (tensor.defined()) buffers_.emplace_back(name, tensor);
  return tensor;
}

void Module::check_child(const std::string& name, const std::shared_ptr<Module>& module) const {
  if (!module) throw ValueError("Submodule '{}' is an empty handle (in module {})", name, this->name());
  // A cycle would never be freed, and a walk over it would never end.
  module->visit("", [&](const std::string&, const Module& below) {
    if (&below != this) return;
    throw ValueError(
        "Submodule '{}' ({}) holds the module {} that it was to be registered in; a "
        "module cannot be its own descendant",
        name, module->name(), this->name());
  });
}

// A shared module keeps the path of the first place where it was registered.
void Module::adopt(const std::string& name, Module& child) {
  if (child.parent_) return;
  child.parent_ = this;
  child.own_name_ = name;
  child.forget_paths();
  // Errors name parameters by their path even if no wrapper names them, as with a teacher's; a wrapper's names stay.
  std::string prefix = name;
  for (const Module* above = this; above->parent_; above = above->parent_)
    prefix = above->own_name_ + "." + prefix;
  for (const auto& [inside, parameter] : child.list_parameters(true, prefix)) {
    autograd::AutogradMeta& meta = autograd::ensure_meta(parameter);
    if (meta.observers.empty()) meta.registered_as = inside;
  }
}

void Module::disown(Module& child) {
  if (child.parent_ != this) return;
  child.parent_ = nullptr;
  child.own_name_.clear();
  child.forget_paths();
}

std::shared_ptr<Module> Module::register_module(const std::string& name, std::shared_ptr<Module> module) {
  check_name(name, "Submodule");
  check_child(name, module);
  children_.emplace_back(name, module);
  adopt(name, *module);
  return module;
}

std::shared_ptr<Module> Module::replace_module(const std::string& name, std::shared_ptr<Module> module,
                                               SourceLocation where) {
  const auto found =
      std::find_if(children_.begin(), children_.end(), [&](const auto& child) { return child.first == name; });
  if (found == children_.end()) {
    throw ValueError("Submodule with name '{}' is not defined (in module {}); register_module adds a new one", name,
                     this->name());
  }
  check_child(name, module);
  child_replaced(name, module);
  for (const Tensor& parameter : module->parameters())
    autograd::ensure_meta(parameter).registered_at = where;
  const std::shared_ptr<Module> old = std::exchange(found->second, module);
  disown(*old);
  // The old module may still be registered under another name here.
  for (const auto& [other, child] : children_) {
    if (child == old) adopt(other, *old);
  }
  adopt(name, *module);
  return module;
}

void Module::child_replaced(const std::string&, const std::shared_ptr<Module>&) {}

void Module::forget_paths() const {
  path_ = nullptr;
  for (const auto& [name, child] : children_) {
    if (child->parent_ == this) child->forget_paths();
  }
}

const std::string& Module::path() const {
  if (path_) return *path_;
  std::string text = own_name_;
  if (parent_ && !parent_->path().empty()) text = parent_->path() + "." + own_name_;
  path_ = autograd::intern(text);
  return *path_;
}

// Not cached: inside a constructor the type is still that of a base.
std::string Module::name() const { return readable_type_name(typeid(*this)); }

const char* Module::type_name() const {
  if (!type_name_) type_name_ = readable_type_name(typeid(*this));
  return type_name_;
}

void Module::visit(const std::string& prefix,
                   const std::function<void(const std::string&, const Module&)>& body) const {
  body(prefix, *this);
  for (const auto& [name, child] : children_)
    child->visit(prefix.empty() ? name : prefix + "." + name, body);
}

namespace {

void collect(Named<Tensor>& result, std::set<const TensorImpl*>& seen, const std::string& prefix,
             const Named<Tensor>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (seen.insert(tensor.impl()).second) result.emplace_back(prefix.empty() ? name : prefix + "." + name, tensor);
  }
}

template <class T>
std::vector<T> without_names(const Named<T>& named) {
  std::vector<T> result;
  for (const auto& [name, value] : named)
    result.push_back(value);
  return result;
}

}  // namespace

Named<Tensor> Module::named_parameters(bool recurse, const std::string& prefix) const {
  accounted_for_.store(true, std::memory_order_relaxed);
  return list_parameters(recurse, prefix);
}

Named<Tensor> Module::list_parameters(bool recurse, const std::string& prefix) const {
  Named<Tensor> result;
  std::set<const TensorImpl*> seen;
  if (!recurse) {
    collect(result, seen, prefix, parameters_);
    return result;
  }
  visit(prefix,
        [&](const std::string& path, const Module& module) { collect(result, seen, path, module.parameters_); });
  return result;
}

Named<Tensor> Module::named_buffers(bool recurse, const std::string& prefix) const {
  Named<Tensor> result;
  std::set<const TensorImpl*> seen;
  if (!recurse) {
    collect(result, seen, prefix, buffers_);
    return result;
  }
  visit(prefix, [&](const std::string& path, const Module& module) { collect(result, seen, path, module.buffers_); });
  return result;
}

std::vector<Tensor> Module::parameters(bool recurse) const { return without_names(named_parameters(recurse)); }
std::vector<Tensor> Module::buffers(bool recurse) const { return without_names(named_buffers(recurse)); }
std::vector<std::shared_ptr<Module>> Module::children() const { return without_names(children_); }

Named<const Module*> Module::named_modules(const std::string& prefix) const {
  Named<const Module*> result;
  std::set<const Module*> seen;
  visit(prefix, [&](const std::string& path, const Module& module) {
    if (seen.insert(&module).second) result.emplace_back(path, &module);
  });
  return result;
}

Named<Module*> Module::named_modules(const std::string& prefix) {
  Named<Module*> result;
  // Everything in the tree is held as non-const; only the walk is shared with the const version.
  for (const auto& [path, module] : std::as_const(*this).named_modules(prefix))
    result.emplace_back(path, const_cast<Module*>(module));
  return result;
}

std::vector<const Module*> Module::modules() const { return without_names(named_modules()); }
std::vector<Module*> Module::modules() { return without_names(named_modules()); }

void Module::print(std::ostream& out, int indent) const {
  const std::string margin(static_cast<size_t>(indent), ' ');
  out << name() << "(" << extra();
  for (const auto& [name, child] : children_) {
    out << "\n" << margin << "  (" << name << "): ";
    child->print(out, indent + 2);
  }
  if (!children_.empty()) out << "\n" << margin;
  out << ")";
}

std::ostream& operator<<(std::ostream& out, const Module& module) {
  module.print(out, 0);
  return out;
}

}  // namespace brigade::nn
