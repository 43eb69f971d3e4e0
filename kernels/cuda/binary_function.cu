// CUDA kernels of binary_function: the function is selected at run time and called instead of inlined, since a kernel
// computes many elements and the functions are long.
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/common/elementwise_functors.h>
#include <brigade/kernels/cuda/detail/map.h>

namespace brigade::kernels {
namespace {

using cuda::map1;
using cuda::map2;

template <class C>
__device__ __attribute__((noinline)) C called_function(BinaryFunction f, C x, C y) {
  return AnyBinaryFunction{f}(x, y);
}
struct CalledFunction {
  BinaryFunction f;
  template <class C>
  __device__ C operator()(C x, C y) const {
    return called_function(f, x, y);
  }
};
template <class C>
struct CalledWithNumber {
  BinaryFunction f;
  C number;
  bool reversed;
  __device__ C operator()(C x) const { return called_function(f, reversed ? number : x, reversed ? x : number); }
};

Tensor binary_function_cuda(const Tensor& a, const Tensor& b, BinaryFunction f) {
  const Operands o = prepare_binary_function(a, b, f);
  visit_dtype(o.out.dtype(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) map2<T, T>("binary_function", o.x, o.y, o.out, CalledFunction{f});
  });
  return o.out;
}

Tensor binary_function_scalar_cuda(const Tensor& a, Scalar number, BinaryFunction f, bool reversed) {
  const Operands o = prepare_binary_function_scalar(a, number, f);
  visit_dtype(o.out.dtype(), [&]<class T>() {
    using C = compute_type<T>;
    if constexpr (!std::is_same_v<T, bool>) {
      map1<T, T>("binary_function_scalar", o.x, o.out, CalledWithNumber<C>{f, number.to<C>(), reversed});
    }
  });
  return o.out;
}

const AddKernel add_binary_function(binary_function, kCUDA, &binary_function_cuda);
const AddKernel add_binary_function_scalar(binary_function_scalar, kCUDA, &binary_function_scalar_cuda);

}  // namespace
}  // namespace brigade::kernels
