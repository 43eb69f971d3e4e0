// FabricModule: a module set up by a Fabric: on its device, in its precision, and reduced over its ranks.
#pragma once

#include <brigade/amp/autocast.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/fabric/detail/convert.h>

#include <memory>
#include <optional>
#include <utility>

namespace brigade::dist {

// RAII: the autocast region of a precision; empty if it has none.
class PrecisionRegion {
 public:
  PrecisionRegion(const amp::Precision& precision, Device device, SourceLocation where) {
    if (precision.autocast) region_.emplace(device.type, precision.autocast, true, std::nullopt, where);
  }
  PrecisionRegion(const PrecisionRegion&) = delete;
  PrecisionRegion& operator=(const PrecisionRegion&) = delete;

 private:
  std::optional<amp::autocast> region_;
};

// A handle: copies refer to the same module. A call runs the module's forward (under DistributedDataParallel if the
// strategy wraps) in the precision's autocast: floating inputs are cast to the parameters' dtype, half results to
// float32, so that the loss is computed in float32. This converts tensors and vectors of tensors, and in results also
// pairs and tuples of them; other types pass unchanged.
//
// A submodule that is called directly (model->student(x)) runs without that conversion and autocast (use
// fabric.autocast() where they matter); its gradients are still reduced, because a reducer observes the backward, not
// the forward.
template <nn::Holder Module>
class FabricModule {
 public:
  using ImplType = typename Module::ImplType;

  FabricModule(Module module, std::shared_ptr<DistributedDataParallel<Module>> ddp, const amp::Precision& precision,
               Device device)
      : module_(std::move(module)), ddp_(std::move(ddp)), precision_(&precision), device_(device) {}

  template <class A>
  auto operator()(A&& a, SourceLocation where = SourceLocation::current()) const {
    return run(where, input(std::forward<A>(a), where));
  }
  template <class A, class B>
  requires(!std::is_same_v<std::remove_cvref_t<B>, SourceLocation>) auto operator()(
      A&& a, B&& b, SourceLocation where = SourceLocation::current()) const {
    return run(where, input(std::forward<A>(a), where), input(std::forward<B>(b), where));
  }
  template <class A, class B, class C>
  requires(!std::is_same_v<std::remove_cvref_t<C>, SourceLocation>) auto operator()(
      A&& a, B&& b, C&& c, SourceLocation where = SourceLocation::current()) const {
    return run(where, input(std::forward<A>(a), where), input(std::forward<B>(b), where),
               input(std::forward<C>(c), where));
  }

  // The module itself.
  const Module& module() const noexcept { return module_; }
  ImplType* operator->() const { return module_.get(); }
  ImplType& operator*() const { return *module_; }
  // Null if the strategy does not wrap.
  const std::shared_ptr<DistributedDataParallel<Module>>& ddp() const noexcept { return ddp_; }

 private:
  template <class A>
  decltype(auto) input(A&& argument, SourceLocation where) const {
    return detail::input_to(std::forward<A>(argument), precision_->parameters, where);
  }
  template <class... Args>
  auto run(SourceLocation where, Args&&... args) const {
    const auto forward = [&]() -> decltype(auto) {
      const PrecisionRegion region(*precision_, device_, where);
      if (ddp_) return (*ddp_)(std::forward<Args>(args)..., where);
      return module_(std::forward<Args>(args)..., where);
    };
    return detail::output_of(forward(), where);
  }

  Module module_;
  std::shared_ptr<DistributedDataParallel<Module>> ddp_;
  const amp::Precision* precision_;
  Device device_;
};

}  // namespace brigade::dist
