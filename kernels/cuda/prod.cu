// CUDA kernels of prod.
#include <brigade/kernels/cuda/detail/reduce_slices.h>
#include <brigade/kernels/reduce.h>

namespace brigade::kernels {
namespace {

Tensor prod_cuda(const Tensor& x, const Shape& dims, bool keepdim) {
  const ReductionPlan r = prepare_reduction(x, dims, keepdim, is_floating_point(x.dtype()) ? x.dtype() : kInt64);
  visit_dtype(x.dtype(), [&]<class T>() {
    cuda::reduce_slices<T>("prod", r, ProductOf<T>{static_cast<decltype(ProductOf<T>::out)>(r.out.raw_data())});
  });
  return r.out;
}

const AddKernel add_prod(prod, kCUDA, &prod_cuda);

}  // namespace
}  // namespace brigade::kernels
