// Module: a tree of named parameters, buffers and children, as torch::nn::Module.
//
//   struct NetImpl : nn::Module {
//     nn::Linear fc1{nullptr}, fc2{nullptr};
//     NetImpl() {
//       fc1 = register_module("fc1", nn::Linear(784, 64));
//       fc2 = register_module("fc2", nn::Linear(64, 10));
//     }
//     Tensor forward(const Tensor& x) { return fc2(relu(fc1(x))); }
//   };
//   BRIGADE_MODULE(Net);
//
// Net is then a handle to a shared NetImpl; calling it opens a scope, so that the tape knows which module an operation
// ran in.
#pragma once

#include <brigade/autograd/scope.h>
#include <brigade/core/tensor.h>

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace brigade::nn {

template <class T>
using Named = std::vector<std::pair<std::string, T>>;

// A handle to a module, as BRIGADE_MODULE makes it.
template <class T>
concept Holder = requires(const T& holder) {
  holder.ptr();
};

// What load_state_dict could not match (strict = false).
struct IncompatibleKeys {
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
};

class Module {
 public:
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module();

  // --- building. Names must be non-empty, without '.', and new (ValueError).
  // ------------------------------------------------------
  Tensor register_parameter(const std::string& name, Tensor tensor, bool requires_grad = true);
  Tensor register_buffer(const std::string& name, Tensor tensor);
  std::shared_ptr<Module> register_module(const std::string& name, std::shared_ptr<Module> module);
  template <Holder H>
  H register_module(const std::string& name, H holder) {
    register_module(name, std::shared_ptr<Module>(holder.ptr()));
    return holder;
  }
  // Puts another module in the place of a child. Throws ValueError when there is no such child.
  void replace_module(const std::string& name, std::shared_ptr<Module> module);

  // --- looking. Depth first in registration order; a tensor or module that appears twice is listed once, under its
  // first name. -------
  Named<Tensor> named_parameters(bool recurse = true) const;
  Named<Tensor> named_buffers(bool recurse = true) const;
  Named<std::shared_ptr<Module>> named_children() const { return children_; }
  std::vector<Tensor> parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  // This module and all below it, with paths relative to it ("" for itself).
  Named<const Module*> named_modules() const;

  // --- acting on the whole tree
  // ------------------------------------------------------------------------------------------------------
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const noexcept { return training_; }
  void zero_grad(bool set_to_none = true);
  void requires_grad_(bool requires_grad = true, SourceLocation where = SourceLocation::current());
  // Converts floating parameters and buffers in place: they keep their identity, gradients are dropped.
  void to(DType dtype);

  // Names and values, detached, sharing memory. Parameters and buffers, in the order of the tree.
  Named<Tensor> state_dict() const;
  // Copies values by name. Throws ValueError that lists every missing and unexpected name (when strict) and every shape
  // that differs; then nothing has been changed.
  IncompatibleKeys load_state_dict(const Named<Tensor>& state, bool strict = true);

  // --- names
  // ---------------------------------------------------------------------------------------------------------------------------
  // "Linear"
  std::string name() const;
  // Path from the root of the tree that this module was registered in ("encoder.0.fc1"; "" for a root). Interned: lives
  // for ever.
  const std::string* path() const;

 protected:
  // The text between the parentheses when a tree is printed.
  virtual std::string extra() const { return ""; }

 private:
  friend std::ostream& operator<<(std::ostream& out, const Module& module);
  void check_name(const std::string& name) const;
  void adopt(const std::string& name, const std::shared_ptr<Module>& module);
  void forget_paths() const;
  void visit(const std::string& prefix, const std::function<void(const std::string&, const Module&)>& body) const;
  void print(std::ostream& out, int indent) const;

  Named<Tensor> parameters_;
  Named<Tensor> buffers_;
  Named<std::shared_ptr<Module>> children_;
  Module* parent_ = nullptr;  // where it was registered first; cleared when that module dies
  std::string own_name_;
  mutable const std::string* path_ = nullptr;
  bool training_ = true;
};

std::ostream& operator<<(std::ostream& out, const Module& module);

// "nn::LinearImpl" -> "Linear"; interned, for ScopeGuard.
const char* readable_type_name(const std::type_info& type);

// A handle to a shared module: what BRIGADE_MODULE(Net) derives Net from.
template <class Impl>
class ModuleHolder {
 public:
  using ImplType = Impl;

  ModuleHolder() : impl_(std::make_shared<Impl>()) {}
  // An empty handle, to be assigned in the constructor of the module that owns it.
  ModuleHolder(std::nullptr_t) {}                                       // NOLINT
  ModuleHolder(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}  // NOLINT
  template <class First, class... Rest>
  requires(!std::is_base_of_v<ModuleHolder, std::remove_cvref_t<First>> &&
           std::is_constructible_v<Impl, First, Rest...>) explicit ModuleHolder(First&& first, Rest&&... rest)
      : impl_(std::make_shared<Impl>(std::forward<First>(first), std::forward<Rest>(rest)...)) {}

  const std::shared_ptr<Impl>& ptr() const { return impl_; }
  Impl* get() const { return checked(); }
  Impl* operator->() const { return checked(); }
  Impl& operator*() const { return *checked(); }
  explicit operator bool() const noexcept { return impl_ != nullptr; }

  // Runs forward inside the module's scope. Forward may take the caller's line as its last argument.
  template <class A>
  decltype(auto) operator()(A&& a, SourceLocation where = SourceLocation::current()) const {
    return call(where, std::forward<A>(a));
  }
  template <class A, class B>
  requires(!std::is_same_v<std::remove_cvref_t<B>, SourceLocation>) decltype(auto) operator()(
      A&& a, B&& b, SourceLocation where = SourceLocation::current()) const {
    return call(where, std::forward<A>(a), std::forward<B>(b));
  }
  template <class A, class B, class C>
  requires(!std::is_same_v<std::remove_cvref_t<C>, SourceLocation>) decltype(auto) operator()(
      A&& a, B&& b, C&& c, SourceLocation where = SourceLocation::current()) const {
    return call(where, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c));
  }

 private:
  Impl* checked() const {
    if (!impl_)
      throw ValueError("an empty module handle was used; assign it (register_module) in the constructor of its owner");
    return impl_.get();
  }
  template <class... Args>
  decltype(auto) call(SourceLocation where, Args&&... args) const {
    Impl& impl = *checked();
    const autograd::ScopeGuard scope(impl.path(), readable_type_name(typeid(impl)), where);
    if constexpr (requires { impl.forward(std::forward<Args>(args)..., where); }) {
      return impl.forward(std::forward<Args>(args)..., where);
    } else {
      return impl.forward(std::forward<Args>(args)...);
    }
  }
  std::shared_ptr<Impl> impl_;
};

}  // namespace brigade::nn

// Defines Name as the handle of NameImpl.
#define BRIGADE_MODULE(Name)                                   \
  class Name : public brigade::nn::ModuleHolder<Name##Impl> {  \
   public:                                                     \
    using brigade::nn::ModuleHolder<Name##Impl>::ModuleHolder; \
  }
