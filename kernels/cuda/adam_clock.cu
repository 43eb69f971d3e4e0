// CUDA kernels of Adam's clock: a single thread.
#include <brigade/kernels/optimizer.h>

#include <brigade/kernels/common/optimizer.h>
#include <brigade/kernels/cuda/detail/launch.h>

namespace brigade::kernels {

namespace {

__global__ void advance_adam_clock_kernel(AdamClockAdvance advance) { advance(); }

void advance_adam_clock_cuda(const Tensor& clock, const Tensor& found_inf, double beta1, double beta2) {
  cuda::launch({"advance_adam_clock", 1, 1}, clock.device(), &advance_adam_clock_kernel,
               adam_clock_advance(clock, found_inf, beta1, beta2));
}

const AddKernel add_advance_adam_clock(advance_adam_clock, kCUDA, &advance_adam_clock_cuda);

}  // namespace

}  // namespace brigade::kernels
