// AnyModule: a type-erased module that maps one tensor to one tensor.
#pragma once

#include <brigade/nn/module_holder.h>

#include <concepts>
#include <memory>

namespace brigade::nn {

template <class H>
concept TensorModule = Holder<H> && requires(const H& holder, const Tensor& x, SourceLocation where) {
  typename H::ImplType;
  { holder(x, where) } -> std::convertible_to<Tensor>;
};

// A handle like those that BRIGADE_MODULE makes, without the module's own type. Calling it opens the module's scope.
//   nn::ModuleList<nn::AnyModule> layers;  layers->push_back(nn::Linear(8, 8));  layers->push_back(nn::ReLU());
class AnyModule {
 public:
  using ImplType = Module;

  template <TensorModule H>
  requires(!std::same_as<std::remove_cvref_t<H>, AnyModule>)
      AnyModule(const H& holder)  // NOLINT: stands for any handle
      : impl_(holder.ptr()), call_([](Module& module, const Tensor& x, SourceLocation where) -> Tensor {
          // Non-owning: the AnyModule keeps the module alive while it is called.
          using Impl = typename H::ImplType;
          return H(std::shared_ptr<Impl>(std::shared_ptr<Impl>(), &static_cast<Impl&>(module)))(x, where);
        }) {}

  const std::shared_ptr<Module>& ptr() const noexcept { return impl_; }
  Module* get() const { return &checked(); }
  Module* operator->() const { return &checked(); }
  Module& operator*() const { return checked(); }
  explicit operator bool() const noexcept { return impl_ != nullptr; }

  Tensor operator()(const Tensor& x, SourceLocation where = SourceLocation::current()) const {
    return call_(checked(), x, where);
  }

  // Makes the handle call another module. Returns false, and does nothing, unless it has the same dynamic type.
  bool rebind(const std::shared_ptr<Module>& module);

 private:
  Module& checked() const {
    if (!impl_) [[unlikely]]
      detail::throw_empty_handle(typeid(Module));
    return *impl_;
  }

  std::shared_ptr<Module> impl_;
  Tensor (*call_)(Module& module, const Tensor& x, SourceLocation where);
};

}  // namespace brigade::nn
