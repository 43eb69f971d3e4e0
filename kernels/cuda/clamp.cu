// CUDA kernels of clamp.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/cuda/detail/map.h>

namespace brigade::kernels {
namespace {

Tensor clamp_cuda(const Tensor& x, const Borders& borders) {
  const ClampPlan plan = prepare_clamp(x, borders);
  visit_dtype(plan.out.dtype(), [&]<class T>() {
    using C = compute_type<T>;
    if constexpr (!std::is_same_v<T, bool>) {
      cuda::map1<T, T>("clamp", plan.x, plan.out, clamping<C>(borders));
    }
  });
  return plan.out;
}

Tensor clamp_backward_cuda(const Tensor& grad, const Tensor& x, const Borders& borders) {
  check_gradient_like(grad, x, "clamp backward");
  Tensor out = empty(x.sizes(), x.options());
  visit_floating(x.dtype(), "clamp backward", [&]<class T>() {
    using C = compute_type<T>;
    cuda::map2<T, T>("clamp_backward", grad, x, out, clamping_backward<C>(borders));
  });
  return out;
}

const AddKernel add_clamp(clamp, kCUDA, &clamp_cuda);
const AddKernel add_clamp_backward(clamp_backward, kCUDA, &clamp_backward_cuda);

}  // namespace
}  // namespace brigade::kernels
