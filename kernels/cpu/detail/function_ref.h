// A non-owning reference to a callable, which must outlive it: no copy, no allocation.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace brigade::kernels::cpu {

template <class Signature>
class FunctionRef;

template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
           std::is_invocable_r_v<Result, const F&, Arguments...>) FunctionRef(const F& function)
  noexcept
      : object_(std::addressof(function)), call_([](const void* object, Arguments... arguments) -> Result {
          return (*static_cast<const F*>(object))(std::forward<Arguments>(arguments)...);
        }) {}
  Result operator()(Arguments... arguments) const { return call_(object_, std::forward<Arguments>(arguments)...); }

 private:
  const void* object_;
  Result (*call_)(const void*, Arguments...);
};

}  // namespace brigade::kernels::cpu
