// The CUDA column of elementary.h. float32 over dense memory has a kernel for each function; the
// other dtypes and layouts share one that chooses when it runs.
#include <brigade/kernels/elementary.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/elementary.h>
#include <brigade/kernels/cuda/detail/map.h>

namespace brigade::kernels {

namespace {

// Called, not inlined: a kernel computes many elements, and twenty functions for each would be long
// code.
template <class C>
__device__ __attribute__((noinline)) C called_function(Function f, C x) {
  return any_function(f, x, std::make_integer_sequence<int, kFunctions>{});
}
struct AnyFunction {
  Function f;
  template <class C>
  __device__ C operator()(C x) const {
    return called_function(f, x);
  }
};

Tensor function_cuda(const Tensor& x, Function f) {
  Tensor out = empty(x.sizes(), x.options());
  visit_floating(x.dtype(), "elementary function", [&]<class T>() {
    if constexpr (std::is_same_v<T, float>) {
      bool done = false;
      with_function(f, [&](auto functor) { done = cuda::map1_dense<T, T>("function", x, out, functor); });
      if (!done) cuda::map1_strided<T, T>("function", x, out, AnyFunction{f});
    } else {
      cuda::map1<T, T>("function", x, out, AnyFunction{f});
    }
  });
  return out;
}

const AddKernel add_function(function, kCUDA, &function_cuda);

}  // namespace

}  // namespace brigade::kernels
