// CUDA kernels of nll_loss: one thread per position. Backward fills the gradient with zeros and writes one element per
// position.
#include <brigade/kernels/loss.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/loss.h>
#include <brigade/kernels/cuda/detail/loss_sums.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::kernels {
namespace {

constexpr int kThreads = 256;

// The index of the element for a class at a position.
__device__ int64_t place(int64_t position, int64_t wanted, int64_t classes, int64_t spatial) {
  const int64_t row = position / spatial;
  return (row * classes + wanted) * spatial + (position - row * spatial);
}

// Out: the dtype of the log probabilities, or the type in which losses are summed.
template <class T, class Out>
__global__ void __launch_bounds__(kThreads)
    nll_loss_kernel(int64_t positions, int64_t spatial, cuda::Targets targets, ClassShares<compute_type<T>> shares,
                    const T* log_probs, Out* losses) {
  using C = compute_type<T>;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= positions) return;
  const int64_t wanted = targets.at(i);
  losses[i] = static_cast<Out>(wanted < 0 ? C(0)
                                          : -shares.weight_of(wanted) *
                                                static_cast<C>(log_probs[place(i, wanted, shares.classes, spatial)]));
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    nll_loss_backward_kernel(int64_t positions, int64_t spatial, const int64_t* classes, int64_t ignore_index,
                             ClassShares<compute_type<T>> shares, const T* grad, bool one_grad,
                             const double* denominator, T* result) {
  using C = compute_type<T>;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= positions) return;
  const int64_t wanted = classes[i];
  if (wanted == ignore_index || wanted < 0 || wanted >= shares.classes) return;
  const C scale = denominator ? static_cast<C>(1.0 / *denominator) : C(1);
  result[place(i, wanted, shares.classes, spatial)] =
      static_cast<T>(-shares.weight_of(wanted) * (static_cast<C>(grad[one_grad ? 0 : i]) * scale));
}

NllLoss nll_loss_cuda(const Tensor& log_probs, const Tensor& target, const ClassLossOptions& options) {
  const ClassLossPlan plan = prepare_class_loss("nll_loss", log_probs.sizes(), log_probs.options(), target, options);
  const Device device = log_probs.device();
  const Tensor source = contiguous(log_probs);
  const int64_t positions = target.numel();
  const bool each = options.reduction == Reduction::None;
  NllLoss result;
  result.loss = empty(each ? target.sizes() : Shape{}, log_probs.options());
  if (options.reduction == Reduction::Mean) result.denominator = empty({}, {kFloat64, device});
  const cuda::Targets targets{static_cast<const int64_t*>(plan.target.raw_data()), options.ignore_index,
                              cuda::IndexCheck(device, kNllTargetClass, plan.sizes.classes)};
  visit_floating(log_probs.dtype(), "nll_loss", [&]<class T>() {
    using C = compute_type<T>;
    const auto run = [&]<class Out>(const Tensor& losses, Out) {
      cuda::launch({"nll_loss", cuda::blocks_for(positions, kThreads), kThreads}, device, &nll_loss_kernel<T, Out>,
                   positions, plan.sizes.spatial, targets, class_shares<C>(plan, 0),
                   static_cast<const T*>(source.raw_data()), static_cast<Out*>(losses.raw_data()));
    };
    if (each) return run(result.loss, T());
    const Tensor losses = empty(target.sizes(), {dtype_of<C>, device});
    run(losses, C());
    cuda::finish_class_losses<C, T>(plan, options, losses, result.denominator, result.loss);
  });
  brigade::cuda::throw_reported_if_blocking(device.index);
  return result;
}

Tensor nll_loss_backward_cuda(const Tensor& grad, const Shape& sizes, const Tensor& target, const Tensor& denominator,
                              const ClassLossOptions& options) {
  const ClassLossPlan plan = prepare_class_loss("nll_loss", sizes, grad.options(), target, options);
  check_loss_gradient(grad, target.sizes(), "nll_loss");
  const Tensor slope = contiguous(grad);
  const Tensor result = empty(sizes, grad.options());
  fill(result, 0);
  const int64_t positions = target.numel();
  visit_floating(grad.dtype(), "nll_loss_backward", [&]<class T>() {
    cuda::launch({"nll_loss_backward", cuda::blocks_for(positions, kThreads), kThreads}, grad.device(),
                 &nll_loss_backward_kernel<T>, positions, plan.sizes.spatial,
                 static_cast<const int64_t*>(plan.target.raw_data()), options.ignore_index,
                 class_shares<compute_type<T>>(plan, 0), static_cast<const T*>(slope.raw_data()), slope.numel() == 1,
                 data_or_null<const double>(denominator), static_cast<T*>(result.raw_data()));
  });
  return result;
}

const AddKernel add_nll_loss(nll_loss, kCUDA, &nll_loss_cuda);
const AddKernel add_nll_loss_backward(nll_loss_backward, kCUDA, &nll_loss_backward_cuda);

}  // namespace
}  // namespace brigade::kernels
