// CUDA kernels of amax and amin.
#include <brigade/kernels/cuda/detail/reduce_slices.h>
#include <brigade/kernels/reduce.h>

namespace brigade::kernels {
namespace {

template <bool largest>
Tensor extreme(const Tensor& x, const Shape& dims, bool keepdim, const char* what) {
  const ReductionPlan r = prepare_extreme(x, dims, keepdim, what);
  visit_dtype(x.dtype(), [&]<class T>() {
    cuda::reduce_slices<T>(what, r, ExtremeOf<largest, T>{static_cast<T*>(r.out.raw_data())});
  });
  return r.out;
}

Tensor amax_cuda(const Tensor& x, const Shape& dims, bool keepdim) { return extreme<true>(x, dims, keepdim, "amax"); }
Tensor amin_cuda(const Tensor& x, const Shape& dims, bool keepdim) { return extreme<false>(x, dims, keepdim, "amin"); }

const AddKernel add_amax(amax, kCUDA, &amax_cuda);
const AddKernel add_amin(amin, kCUDA, &amin_cuda);

}  // namespace
}  // namespace brigade::kernels
