// Largest and smallest elements on the CPU: one reduction over slices for each dtype.
#include <brigade/kernels/reduce.h>

#include <brigade/kernels/common/reducers.h>
#include <brigade/kernels/cpu/detail/reduce_slices.h>

namespace brigade::kernels {
namespace {

template <bool largest>
Tensor extreme(const Tensor& x, const Shape& dims, bool keepdim) {
  const ReductionPlan r = prepare_extreme(x, dims, keepdim, largest ? "amax" : "amin");
  visit_dtype(x.dtype(), [&]<class T>() {
    cpu::reduce_slices<T>(r, ExtremeOf<largest, T>{static_cast<T*>(r.out.raw_data())},
                          largest ? cpu::Fold::Largest : cpu::Fold::Smallest);
  });
  return r.out;
}

Tensor amax_cpu(const Tensor& x, const Shape& dims, bool keepdim) { return extreme<true>(x, dims, keepdim); }
Tensor amin_cpu(const Tensor& x, const Shape& dims, bool keepdim) { return extreme<false>(x, dims, keepdim); }

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Shape&, bool)> amax("amax", &amax_cpu);
constinit Kernel<Tensor(const Tensor&, const Shape&, bool)> amin("amin", &amin_cpu);

}  // namespace brigade::kernels
