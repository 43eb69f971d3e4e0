// CUDA kernels of elementwise.h: binary arithmetic. Floating dtypes in dense memory have one kernel per operation;
// other dtypes and layouts share a kernel that selects the operation at run time.
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/common/elementwise_functors.h>
#include <brigade/kernels/cuda/detail/map.h>
#include <brigade/kernels/factory.h>

namespace brigade::kernels {
namespace {

Tensor binary_cuda(const Tensor& a, const Tensor& b, BinaryOp op) {
  const Operands o = prepare_binary(a, b, op);
  visit_dtype(o.out.dtype(), [&]<class T>() {
    bool done = false;
    if constexpr (is_floating_point(dtype_of<T>)) {
      with_binary(op, [&](auto f) { done = cuda::map2_dense<T, T>("binary", o.x, o.y, o.out, f); });
    } else {
      done = cuda::map2_dense<T, T>("binary", o.x, o.y, o.out, AnyBinary{op});
    }
    if (!done) cuda::map2_strided<T, T>("binary", o.x, o.y, o.out, AnyBinary{op});
  });
  return o.out;
}

Tensor binary_scalar_cuda(const Tensor& a, Scalar scalar, BinaryOp op, bool reversed) {
  const Operands o = prepare_binary_scalar(a, scalar, op);
  if (o.out.dtype() == kBool) return binary(a, full({}, scalar, a.options()), op);
  visit_dtype(o.out.dtype(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      using C = compute_type<T>;
      const C number = scalar.to<C>();
      const WithNumber<AnyBinary, C> any{AnyBinary{op}, number, reversed};
      bool done = false;
      if constexpr (is_floating_point(dtype_of<T>)) {
        with_binary(op, [&](auto f) {
          done = cuda::map1_dense<T, T>("binary_scalar", o.x, o.out, WithNumber<decltype(f), C>{f, number, reversed});
        });
      } else {
        done = cuda::map1_dense<T, T>("binary_scalar", o.x, o.out, any);
      }
      if (!done) cuda::map1_strided<T, T>("binary_scalar", o.x, o.out, any);
    }
  });
  return o.out;
}

const AddKernel add_binary(binary, kCUDA, &binary_cuda);
const AddKernel add_binary_scalar(binary_scalar, kCUDA, &binary_scalar_cuda);

}  // namespace
}  // namespace brigade::kernels
