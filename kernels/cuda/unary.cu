// CUDA kernels of elementwise.h: unary functions. Dense memory has one kernel per function; strided floating dtypes
// share a kernel that selects the function at run time.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/common/elementwise_functors.h>
#include <brigade/kernels/cuda/detail/map.h>

namespace brigade::kernels {
namespace {

struct AnyUnary {
  UnaryOp op;
  template <class C>
  __device__ C operator()(C x) const {
    switch (op) {
      case UnaryOp::Neg: return Unary<UnaryOp::Neg>{}(x);
      case UnaryOp::Abs: return Unary<UnaryOp::Abs>{}(x);
      case UnaryOp::Square: return Unary<UnaryOp::Square>{}(x);
      case UnaryOp::Sign: return Unary<UnaryOp::Sign>{}(x);
      default: break;
    }
    if constexpr (std::is_floating_point_v<C>) {
      switch (op) {
        case UnaryOp::Exp: return Unary<UnaryOp::Exp>{}(x);
        case UnaryOp::Log: return Unary<UnaryOp::Log>{}(x);
        case UnaryOp::Sqrt: return Unary<UnaryOp::Sqrt>{}(x);
        default: return Unary<UnaryOp::Reciprocal>{}(x);
      }
    }
    return x;
  }
};

template <class T>
void unary_of(const Tensor& x, const Tensor& out, UnaryOp op) {
  bool done = false;
  const auto dense = [&](auto f) { done = cuda::map1_dense<T, T>("unary", x, out, f); };
  if constexpr (is_floating_point(dtype_of<T>)) {
    with_unary(op, dense);
  } else {
    with_unary_any(op, dense);
  }
  if (!done) cuda::map1_strided<T, T>("unary", x, out, AnyUnary{op});
}

Tensor unary_cuda(const Tensor& x, UnaryOp op) {
  if (x.dtype() == kBool && takes_integers(op)) return unary_of_bool(x, op);
  Tensor out = empty(x.sizes(), x.options());
  if (takes_integers(op) && x.dtype() == kInt64) {
    unary_of<int64_t>(x, out, op);
  } else if (takes_integers(op) && x.dtype() == kInt32) {
    unary_of<int32_t>(x, out, op);
  } else if (takes_integers(op) && x.dtype() == kUInt8) {
    unary_of<uint8_t>(x, out, op);
  } else {
    visit_floating(x.dtype(), "unary operation", [&]<class T>() { unary_of<T>(x, out, op); });
  }
  return out;
}

const AddKernel add_unary(unary, kCUDA, &unary_cuda);

}  // namespace
}  // namespace brigade::kernels
