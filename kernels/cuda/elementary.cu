// CUDA kernels of the elementary functions. float32 in dense memory has one kernel per function; other dtypes and
// layouts share a kernel that selects the function at run time.
#include <brigade/kernels/elementwise.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/elementwise_functors.h>
#include <brigade/kernels/cuda/detail/map.h>

namespace brigade::kernels {
namespace {

// Called instead of inlined: a kernel computes many elements, and twenty inlined functions for each would bloat the
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
