// Products over dimensions on the CPU: one reduction over slices for each dtype.
#include <brigade/kernels/reduce.h>

#include <brigade/kernels/common/reducers.h>
#include <brigade/kernels/cpu/detail/reduce_slices.h>

namespace brigade::kernels {
namespace {

Tensor prod_cpu(const Tensor& x, const Shape& dims, bool keepdim) {
  const ReductionPlan r = prepare_reduction(x, dims, keepdim, is_floating_point(x.dtype()) ? x.dtype() : kInt64);
  visit_dtype(x.dtype(), [&]<class T>() {
    cpu::reduce_slices<T>(r, ProductOf<T>{static_cast<decltype(ProductOf<T>::out)>(r.out.raw_data())},
                          cpu::Fold::Product);
  });
  return r.out;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Shape&, bool)> prod("prod", &prod_cpu);

}  // namespace brigade::kernels
