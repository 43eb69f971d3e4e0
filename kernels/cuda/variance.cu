// CUDA kernels of variance and its gradient.
#include <brigade/kernels/cuda/detail/reduce_slices.h>
#include <brigade/kernels/reduce.h>

namespace brigade::kernels {
namespace {

constexpr int kThreads = 256;

Variance variance_cuda(const Tensor& x, const Shape& dims, double correction, bool keepdim, bool root) {
  const VariancePlan plan = prepare_variance(x, dims, keepdim);
  visit_floating(x.dtype(), "var", [&]<class T>() {
    cuda::reduce_slices<T>("var", plan.slices,
                           VarianceOf<T>{static_cast<T*>(plan.slices.out.raw_data()),
                                         static_cast<T*>(plan.mean.raw_data()), correction, root});
  });
  return {plan.slices.out, plan.mean};
}

// A vector of `length` elements per thread: of one slice if inner is 1, otherwise of adjacent slices.
template <int length, class T>
__global__ void __launch_bounds__(kThreads)
    variance_backward_kernel(int64_t count, int64_t reduced, int64_t inner, const T* x, const T* factor, const T* mean,
                             T* slope) {
  using C = compute_type<T>;
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * length;
  if (at >= count) return;
  const int64_t slice = at / (reduced * inner) * inner + at % inner;
  const int64_t step = inner == 1 ? 0 : 1;
  const auto values = cuda::load_vector<T, length>(x + at);
  cuda::Vector<T, length> result;
#pragma unroll
  for (int k = 0; k < length; ++k) {
    const C distance = static_cast<C>(values.values[k]) - static_cast<C>(mean[slice + k * step]);
    result.values[k] = static_cast<T>(distance * static_cast<C>(factor[slice + k * step]));
  }
  cuda::store_vector<T, length>(slope + at, result);
}

Tensor variance_backward_cuda(const Tensor& factor, const Tensor& x, const Tensor& mean, const Shape& dims) {
  const VarianceBackwardPlan plan = prepare_variance_backward(factor, x, mean, dims);
  const ReductionPlan& slices = plan.slices;
  const int64_t count = plan.slope.numel();
  visit_floating(x.dtype(), "var backward", [&]<class T>() {
    constexpr int kLength = cuda::kVectorBytes / static_cast<int>(sizeof(T));
    const bool vectors = (slices.inner == 1 ? slices.reduced : slices.inner) % kLength == 0 &&
                         cuda::start_aligned({&slices.x, &plan.slope});
    cuda::launch({"var_backward", cuda::blocks_for(count, kThreads * (vectors ? kLength : 1)), kThreads}, x.device(),
                 vectors ? &variance_backward_kernel<kLength, T> : &variance_backward_kernel<1, T>, count,
                 slices.reduced, slices.inner, static_cast<const T*>(slices.x.raw_data()),
                 static_cast<const T*>(plan.factor.raw_data()), static_cast<const T*>(plan.mean.raw_data()),
                 static_cast<T*>(plan.slope.raw_data()));
  });
  return plan.result;
}

const AddKernel add_variance(variance, kCUDA, &variance_cuda);
const AddKernel add_variance_backward(variance_backward, kCUDA, &variance_backward_cuda);

}  // namespace
}  // namespace brigade::kernels
