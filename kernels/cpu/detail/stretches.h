// Elementwise operations over tensors of any layout and dtype, with loops over dense stretches of three types: float32
// (also for the half types), float64 and int64 (for all integers and bool). Data that is not dense, or of another
// dtype, goes through a small buffer in the L1 cache. An operation is thus compiled for three types and one layout, and
// its float32 loop for each instruction set.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/cpu/vector/elementwise.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>

namespace brigade::kernels::cpu {

// A non-owning reference to a callable, which must outlive it: no copy, no allocation.

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

// out[i] = f(in[0][i], in[1][i], ...) for a stretch. `out` may alias an input, element for element.
template <class C, class Out = C>
using Loop = FunctionRef<void(const C* const* in, Out* out, int64_t n)>;

// The same for loops that also take the half types (vector/elementwise.h). They get halves whenever all operands have
// one half type, so that the same numbers give the same bits in any layout.
using FloatLoop = FunctionRef<void(const FloatArrays& arrays)>;

// One to three inputs, which broadcast to the shape of `out`, of dtypes whose compute type is C; `out` may be strided.
// `cost`: the work per element, in cheap elements.
void map_floats(std::initializer_list<const Tensor*> inputs, const Tensor& out, Loop<float> loop, int64_t cost = 1);
void map_floats(std::initializer_list<const Tensor*> inputs, const Tensor& out, FloatLoop loop, int64_t cost = 1);
void map_doubles(std::initializer_list<const Tensor*> inputs, const Tensor& out, Loop<double> loop, int64_t cost = 1);
void map_integers(std::initializer_list<const Tensor*> inputs, const Tensor& out, Loop<int64_t> loop);
// `out`: bool.
void compare_floats(std::initializer_list<const Tensor*> inputs, const Tensor& out, Loop<float, bool> loop);
void compare_doubles(std::initializer_list<const Tensor*> inputs, const Tensor& out, Loop<double, bool> loop);
void compare_integers(std::initializer_list<const Tensor*> inputs, const Tensor& out, Loop<int64_t, bool> loop);

// Whether the compute type of `dtype` is float32.
inline bool is_computed_in_float(DType dtype) { return dtype == kFloat32 || is_half(dtype); }

// Whether x is dense, of float32, and so small that dispatch through the table of instruction sets costs more than
// simple arithmetic on its elements.
inline bool is_few(const Tensor& x) { return x.numel() <= 4 && x.dtype() == kFloat32 && x.is_contiguous(); }

// A new tensor f(x), or f(a, b), of floating tensors of one dtype and shape. `what` names the operation in the error
// for a dtype that is not floating. The loops are for float32 and float64.
Tensor map(const char* what, const Tensor& x, int64_t cost, Loop<float> floats, Loop<double> doubles);
Tensor map(const char* what, const Tensor& x, int64_t cost, FloatLoop floats, Loop<double> doubles);
// Also throws ShapeError unless the gradient has the shape and dtype of x.
Tensor map_backward(const char* what, const Tensor& grad, const Tensor& x, int64_t cost, Loop<float> floats,
                    Loop<double> doubles);
Tensor map_backward(const char* what, const Tensor& grad, const Tensor& x, int64_t cost, FloatLoop floats,
                    Loop<double> doubles);

// A loop over one input (loop1) or two inputs, from a function of one element.
template <class C, class F>
auto loop1(F f) {
  return [f](const C* const* in, auto* out, int64_t n) {
    const C* const x = in[0];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i)
      out[i] = f(x[i]);
  };
}
template <class C, class F>
auto loop2(F f) {
  return [f](const C* const* in, auto* out, int64_t n) {
    const C* const x = in[0];
    const C* const y = in[1];
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i)
      out[i] = f(x[i], y[i]);
  };
}

}  // namespace brigade::kernels::cpu
