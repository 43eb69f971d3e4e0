// CUDA kernels of elementwise.h: comparisons.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/common/elementwise_functors.h>
#include <brigade/kernels/cuda/detail/map.h>

namespace brigade::kernels {
namespace {

using cuda::map1;
using cuda::map2;

Tensor compare_cuda(const Tensor& a, const Tensor& b, CompareOp op) {
  const Operands o = prepare_compare(a, b);
  visit_dtype(o.x.dtype(), [&]<class T>() { map2<T, bool>("compare", o.x, o.y, o.out, AnyCompare{op}); });
  return o.out;
}

Tensor compare_scalar_cuda(const Tensor& a, Scalar scalar, CompareOp op) {
  Tensor out = empty(a.sizes(), {kBool, a.device()});
  visit_dtype(a.dtype(), [&]<class T>() {
    if constexpr (!is_floating_point(dtype_of<T>)) {
      if (!scalar.is_floating_point()) {
        const CompareWithNumber<AnyCompare, int64_t> whole{AnyCompare{op}, scalar.to<int64_t>()};
        map1<T, bool>("compare_scalar", a, out, whole);
        return;
      }
    }
    map1<T, bool>("compare_scalar", a, out, CompareWithNumber<AnyCompare, double>{AnyCompare{op}, scalar.to<double>()});
  });
  return out;
}

const AddKernel add_compare(compare, kCUDA, &compare_cuda);
const AddKernel add_compare_scalar(compare_scalar, kCUDA, &compare_scalar_cuda);

}  // namespace
}  // namespace brigade::kernels
