#include <brigade/nn/module.h>

#include <brigade/autograd/grad_mode.h>
#include <brigade/autograd/meta.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <ostream>
#include <set>
#include <typeindex>
#include <typeinfo>
#include <unordered_map>

#include <cxxabi.h>

namespace brigade::nn {

const char* readable_type_name(const std::type_info& type) {
  static std::mutex mutex;
  static auto* const known = new std::unordered_map<std::type_index, const std::string*>;
  // Calls repeat the same few types: look them up without a lock first.
  thread_local std::unordered_map<std::type_index, const char*> mine;
  const auto cached = mine.find(type);
  if (cached != mine.end()) return cached->second;
  std::lock_guard lock(mutex);
  const std::string*& text = (*known)[type];
  if (!text) {
    int status = 0;
    char* demangled = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
    std::string readable = status == 0 ? demangled : type.name();
    std::free(demangled);
    const size_t colon = readable.rfind("::");
    if (colon != std::string::npos && readable.find('<') == std::string::npos) readable = readable.substr(colon + 2);
    if (readable.ends_with("Impl")) readable.resize(readable.size() - 4);
    text = autograd::intern(readable);
  }
  return mine[type] = text->c_str();
}

Module::~Module() {
  for (const auto& [name, child] : children_) {
    if (child->parent_ != this) continue;
    child->parent_ = nullptr;
    child->own_name_.clear();
    child->forget_paths();
  }
}

void Module::check_name(const std::string& name) const {
  const std::string what = "module " + this->name() + ": ";
  if (name.empty()) throw ValueError(what + "a name must not be empty");
  if (name.find('.') != std::string::npos) throw ValueError(what + "the name '" + name + "' must not contain '.'");
  const auto taken = [&](const auto& list) {
    return std::any_of(list.begin(), list.end(), [&](const auto& each) { return each.first == name; });
  };
  if (taken(parameters_) || taken(buffers_) || taken(children_))
    throw ValueError(what + "the name '" + name + "' is already taken");
}

Tensor Module::register_parameter(const std::string& name, Tensor tensor, bool requires_grad) {
  check_name(name);
  if (tensor.defined()) {
    if (!tensor.is_leaf())
      throw AutogradError("parameter '" + name + "' must be a leaf, got a result of an operation; use detach()");
    if (requires_grad) tensor.requires_grad_();
    parameters_.emplace_back(name, tensor);
  }
  return tensor;
}

Tensor Module::register_buffer(const std::string& name, Tensor tensor) {
  check_name(name);
  if (tensor.defined()) buffers_.emplace_back(name, tensor);
  return tensor;
}

void Module::adopt(const std::string& name, const std::shared_ptr<Module>& module) {
  // A shared module keeps the first place it was registered at.
  if (module->parent_) return;
  module->parent_ = this;
  module->own_name_ = name;
  module->forget_paths();
}

std::shared_ptr<Module> Module::register_module(const std::string& name, std::shared_ptr<Module> module) {
  check_name(name);
  if (!module) throw ValueError("module " + this->name() + ": the child '" + name + "' is empty");
  adopt(name, module);
  children_.emplace_back(name, module);
  return module;
}

void Module::replace_module(const std::string& name, std::shared_ptr<Module> module) {
  const auto found =
      std::find_if(children_.begin(), children_.end(), [&](const auto& child) { return child.first == name; });
  if (found == children_.end()) throw ValueError("module " + this->name() + " has no child '" + name + "'");
  if (!module) throw ValueError("module " + this->name() + ": the child '" + name + "' is empty");
  if (found->second->parent_ == this) {
    found->second->parent_ = nullptr;
    found->second->own_name_.clear();
    found->second->forget_paths();
  }
  adopt(name, module);
  found->second = std::move(module);
}

void Module::forget_paths() const {
  path_ = nullptr;
  for (const auto& [name, child] : children_) {
    if (child->parent_ == this) child->forget_paths();
  }
}

const std::string* Module::path() const {
  if (path_) return path_;
  std::string text = own_name_;
  if (parent_ && !parent_->path()->empty()) text = *parent_->path() + "." + own_name_;
  return path_ = autograd::intern(text);
}

std::string Module::name() const { return readable_type_name(typeid(*this)); }

void Module::visit(const std::string& prefix,
                   const std::function<void(const std::string&, const Module&)>& body) const {
  body(prefix, *this);
  for (const auto& [name, child] : children_)
    child->visit(prefix.empty() ? name : prefix + "." + name, body);
}

Named<const Module*> Module::named_modules() const {
  Named<const Module*> result;
  std::set<const Module*> seen;
  visit("", [&](const std::string& path, const Module& module) {
    if (seen.insert(&module).second) result.emplace_back(path, &module);
  });
  return result;
}

namespace {

void collect(Named<Tensor>& result, std::set<const TensorImpl*>& seen, const std::string& prefix,
             const Named<Tensor>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (seen.insert(tensor.impl()).second) result.emplace_back(prefix.empty() ? name : prefix + "." + name, tensor);
  }
}

std::vector<Tensor> without_names(const Named<Tensor>& named) {
  std::vector<Tensor> result;
  for (const auto& [name, tensor] : named)
    result.push_back(tensor);
  return result;
}

}  // namespace

Named<Tensor> Module::named_parameters(bool recurse) const {
  Named<Tensor> result;
  std::set<const TensorImpl*> seen;
  visit("", [&](const std::string& path, const Module& module) {
    if (recurse || &module == this) collect(result, seen, path, module.parameters_);
  });
  return result;
}

Named<Tensor> Module::named_buffers(bool recurse) const {
  Named<Tensor> result;
  std::set<const TensorImpl*> seen;
  visit("", [&](const std::string& path, const Module& module) {
    if (recurse || &module == this) collect(result, seen, path, module.buffers_);
  });
  return result;
}

std::vector<Tensor> Module::parameters(bool recurse) const { return without_names(named_parameters(recurse)); }
std::vector<Tensor> Module::buffers(bool recurse) const { return without_names(named_buffers(recurse)); }

void Module::train(bool on) {
  training_ = on;
  for (const auto& [name, child] : children_)
    child->train(on);
}

void Module::zero_grad(bool set_to_none) {
  for (const Tensor& parameter : parameters()) {
    if (!parameter.grad().defined()) continue;
    if (set_to_none) {
      parameter.set_grad(Tensor());
    } else {
      const NoGradGuard no_grad;
      parameter.grad().zero_();
    }
  }
}

void Module::requires_grad_(bool requires_grad, SourceLocation where) {
  for (const Tensor& parameter : parameters())
    parameter.requires_grad_(requires_grad, where);
}

void Module::to(DType dtype) {
  if (!is_floating_point(dtype))
    throw DTypeError(std::string("Module::to: expected a floating dtype, got ") + brigade::name(dtype));
  std::vector<Tensor> all = parameters();
  for (const Tensor& buffer : buffers())
    all.push_back(buffer);
  for (const Tensor& tensor : all) {
    if (!is_floating_point(tensor.dtype()) || tensor.dtype() == dtype) continue;
    const Tensor converted = kernels::cast(tensor, dtype);
    TensorImpl& impl = *tensor.impl();
    impl.storage = converted.storage();
    impl.strides = converted.strides();
    impl.offset = 0;
    impl.contiguous = true;
    impl.dtype = dtype;
    if (tensor.grad().defined()) tensor.set_grad(Tensor());
  }
}

Named<Tensor> Module::state_dict() const {
  Named<Tensor> result;
  visit("", [&](const std::string& path, const Module& module) {
    for (const auto* list : {&module.parameters_, &module.buffers_}) {
      for (const auto& [name, tensor] : *list)
        result.emplace_back(path.empty() ? name : path + "." + name, tensor.detach());
    }
  });
  return result;
}

IncompatibleKeys Module::load_state_dict(const Named<Tensor>& state, bool strict) {
  const Named<Tensor> own = state_dict();
  const auto find = [](const Named<Tensor>& list, const std::string& name) {
    return std::find_if(list.begin(), list.end(), [&](const auto& each) { return each.first == name; });
  };
  IncompatibleKeys keys;
  std::string problems;
  for (const auto& [name, tensor] : own) {
    const auto given = find(state, name);
    if (given == state.end()) {
      keys.missing.push_back(name);
      if (strict) problems += "\n  missing: " + name;
    } else if (given->second.sizes() != tensor.sizes()) {
      problems += "\n  size mismatch for " + name + ": expected " + to_string(tensor.sizes()) + ", got " +
                  to_string(given->second.sizes());
    }
  }
  for (const auto& [name, tensor] : state) {
    if (find(own, name) != own.end()) continue;
    keys.unexpected.push_back(name);
    if (strict) problems += "\n  unexpected: " + name;
  }
  if (!problems.empty()) throw ValueError("Error(s) in loading state_dict for " + this->name() + ":" + problems);
  const NoGradGuard no_grad;
  for (const auto& [name, tensor] : own) {
    const auto given = find(state, name);
    if (given != state.end()) tensor.copy_(given->second);
  }
  return keys;
}

void Module::print(std::ostream& out, int indent) const {
  out << name() << "(" << extra();
  if (!children_.empty()) {
    out << "\n";
    for (const auto& [name, child] : children_) {
      out << std::string(static_cast<size_t>(indent) + 2, ' ') << "(" << name << "): ";
      child->print(out, indent + 2);
      out << "\n";
    }
    out << std::string(static_cast<size_t>(indent), ' ');
  }
  out << ")";
}

std::ostream& operator<<(std::ostream& out, const Module& module) {
  module.print(out, 0);
  return out;
}

}  // namespace brigade::nn
