// The CUDA column of pool.h: a thread per element of the result. Backward gathers: each element of the input visits the
// windows that contain it, in their order, so that nothing is added by two threads.
#include <brigade/kernels/pool.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cuda/detail/launch.h>
#include <brigade/kernels/detail/pool.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <string>

namespace brigade::kernels {

namespace {

constexpr int kThreads = 256;

using Plane = PoolPlane<int32_t>;

// Where an element stands in planes of `height` x `width`.
struct Place {
  uint32_t plane;
  int32_t h, w;
  __device__ Place(uint32_t i, int32_t height, int32_t width) {
    const uint32_t row = i / static_cast<uint32_t>(width);
    plane = row / static_cast<uint32_t>(height);
    h = static_cast<int32_t>(row - plane * static_cast<uint32_t>(height));
    w = static_cast<int32_t>(i - row * static_cast<uint32_t>(width));
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    max_pool2d_kernel(uint32_t count, Plane plane, const T* x, T* values, int64_t* indices) {
  using C = compute_type<T>;
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const Place out(i, plane.out_height, plane.out_width);
  const T* image = x + static_cast<int64_t>(out.plane) * plane.height * plane.width;
  const auto at = plane.window(out.h, out.w);
  int32_t best = at.h0 * plane.width + at.w0;
  C champion = static_cast<C>(image[best]);
  for (int32_t h = at.h0; h < at.h1; ++h) {
    for (int32_t w = at.w0; w < at.w1; ++w) {
      const C candidate = static_cast<C>(image[h * plane.width + w]);
      if (candidate > champion || candidate != candidate) {
        champion = candidate;
        best = h * plane.width + w;
      }
    }
  }
  values[i] = image[best];
  indices[i] = best;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    max_pool2d_backward_kernel(uint32_t count, Plane plane, const T* grad, const int64_t* indices, T* result) {
  using C = compute_type<T>;
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const Place in(i, plane.height, plane.width);
  const int64_t first = static_cast<int64_t>(in.plane) * plane.out_height * plane.out_width;
  const auto rows = plane.rows_over(in.h);
  const auto columns = plane.columns_over(in.w);
  const int64_t own = in.h * plane.width + in.w;
  C sum = C(0);
  for (int32_t oh = rows.begin; oh < rows.end; ++oh) {
    for (int32_t ow = columns.begin; ow < columns.end; ++ow) {
      const int64_t o = first + oh * plane.out_width + ow;
      if (indices[o] == own) sum += static_cast<C>(grad[o]);
    }
  }
  result[i] = static_cast<T>(sum);
}

template <class T>
__global__ void __launch_bounds__(kThreads) avg_pool2d_kernel(uint32_t count, Plane plane, const T* x, T* result) {
  using C = compute_type<T>;
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const Place out(i, plane.out_height, plane.out_width);
  const T* image = x + static_cast<int64_t>(out.plane) * plane.height * plane.width;
  const auto at = plane.window(out.h, out.w);
  C sum = C(0);
  for (int32_t h = at.h0; h < at.h1; ++h) {
    for (int32_t w = at.w0; w < at.w1; ++w)
      sum += static_cast<C>(image[h * plane.width + w]);
  }
  result[i] = static_cast<T>(sum / static_cast<C>(plane.rows_counted(out.h) * plane.columns_counted(out.w)));
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    avg_pool2d_backward_kernel(uint32_t count, Plane plane, const T* grad, T* result) {
  using C = compute_type<T>;
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const Place in(i, plane.height, plane.width);
  const T* slopes = grad + static_cast<int64_t>(in.plane) * plane.out_height * plane.out_width;
  const auto rows = plane.rows_over(in.h);
  const auto columns = plane.columns_over(in.w);
  C sum = C(0);
  for (int32_t oh = rows.begin; oh < rows.end; ++oh) {
    const int32_t counted = plane.rows_counted(oh);
    const T* row = slopes + oh * plane.out_width;
    for (int32_t ow = columns.begin; ow < columns.end; ++ow)
      sum += static_cast<C>(row[ow]) / static_cast<C>(counted * plane.columns_counted(ow));
  }
  result[i] = static_cast<T>(sum);
}

// Calls run(plane, first, planes) for parts whose elements 32 bits can count.
template <class Run>
void for_planes(const PoolPlan& plan, const char* what, Run&& run) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  const auto& p = plan.plane;
  const int64_t largest = std::max(p.height * p.width, p.out_height * p.out_width);
  if (largest > kMost) throw ShapeError(std::string(what) + ": planes of more than 2^31 - 1 elements on a CUDA device");
  const auto narrow = [](int64_t value) { return static_cast<int32_t>(value); };
  const Plane plane{narrow(p.height),
                    narrow(p.width),
                    narrow(p.out_height),
                    narrow(p.out_width),
                    {narrow(p.kernel[0]), narrow(p.kernel[1])},
                    {narrow(p.stride[0]), narrow(p.stride[1])},
                    {narrow(p.padding[0]), narrow(p.padding[1])},
                    p.count_include_pad};
  const int64_t step = kMost / std::max<int64_t>(largest, 1);
  for (int64_t first = 0; first < plan.planes; first += step)
    run(plane, first, std::min(step, plan.planes - first));
}

MaxPool max_pool2d_cuda(const Tensor& x, const Pool2dParams& params) {
  const PoolPlan plan = plan_pool(x.sizes(), params, "max_pool2d");
  const Tensor source = contiguous(x);
  MaxPool result{empty(plan.out_sizes, x.options()), empty(plan.out_sizes, {kInt64, x.device()})};
  const int64_t pixels = plan.plane.height * plan.plane.width;
  const int64_t outputs = plan.plane.out_height * plan.plane.out_width;
  visit_floating(x.dtype(), "max_pool2d", [&]<class T>() {
    for_planes(plan, "max_pool2d", [&](const Plane& plane, int64_t first, int64_t planes) {
      cuda::launch({"max_pool2d", cuda::blocks_for(planes * outputs, kThreads), kThreads}, x.device(),
                   &max_pool2d_kernel<T>, static_cast<uint32_t>(planes * outputs), plane,
                   static_cast<const T*>(source.raw_data()) + first * pixels,
                   static_cast<T*>(result.values.raw_data()) + first * outputs,
                   static_cast<int64_t*>(result.indices.raw_data()) + first * outputs);
    });
  });
  return result;
}

Tensor max_pool2d_backward_cuda(const Tensor& grad, const Tensor& indices, const Shape& x_sizes,
                                const Pool2dParams& params) {
  const PoolPlan plan = plan_pool_backward(grad, x_sizes, params, "max_pool2d");
  const Tensor slopes = contiguous(grad);
  Tensor result = empty(x_sizes, grad.options());
  const int64_t pixels = plan.plane.height * plan.plane.width;
  const int64_t outputs = plan.plane.out_height * plan.plane.out_width;
  visit_floating(grad.dtype(), "max_pool2d backward", [&]<class T>() {
    for_planes(plan, "max_pool2d", [&](const Plane& plane, int64_t first, int64_t planes) {
      cuda::launch({"max_pool2d_backward", cuda::blocks_for(planes * pixels, kThreads), kThreads}, grad.device(),
                   &max_pool2d_backward_kernel<T>, static_cast<uint32_t>(planes * pixels), plane,
                   static_cast<const T*>(slopes.raw_data()) + first * outputs,
                   static_cast<const int64_t*>(indices.raw_data()) + first * outputs,
                   static_cast<T*>(result.raw_data()) + first * pixels);
    });
  });
  return result;
}

Tensor avg_pool2d_cuda(const Tensor& x, const Pool2dParams& params) {
  const PoolPlan plan = plan_pool(x.sizes(), params, "avg_pool2d");
  const Tensor source = contiguous(x);
  Tensor result = empty(plan.out_sizes, x.options());
  const int64_t pixels = plan.plane.height * plan.plane.width;
  const int64_t outputs = plan.plane.out_height * plan.plane.out_width;
  visit_floating(x.dtype(), "avg_pool2d", [&]<class T>() {
    for_planes(plan, "avg_pool2d", [&](const Plane& plane, int64_t first, int64_t planes) {
      cuda::launch({"avg_pool2d", cuda::blocks_for(planes * outputs, kThreads), kThreads}, x.device(),
                   &avg_pool2d_kernel<T>, static_cast<uint32_t>(planes * outputs), plane,
                   static_cast<const T*>(source.raw_data()) + first * pixels,
                   static_cast<T*>(result.raw_data()) + first * outputs);
    });
  });
  return result;
}

Tensor avg_pool2d_backward_cuda(const Tensor& grad, const Shape& x_sizes, const Pool2dParams& params) {
  const PoolPlan plan = plan_pool_backward(grad, x_sizes, params, "avg_pool2d");
  const Tensor slopes = contiguous(grad);
  Tensor result = empty(x_sizes, grad.options());
  const int64_t pixels = plan.plane.height * plan.plane.width;
  const int64_t outputs = plan.plane.out_height * plan.plane.out_width;
  visit_floating(grad.dtype(), "avg_pool2d backward", [&]<class T>() {
    for_planes(plan, "avg_pool2d", [&](const Plane& plane, int64_t first, int64_t planes) {
      cuda::launch({"avg_pool2d_backward", cuda::blocks_for(planes * pixels, kThreads), kThreads}, grad.device(),
                   &avg_pool2d_backward_kernel<T>, static_cast<uint32_t>(planes * pixels), plane,
                   static_cast<const T*>(slopes.raw_data()) + first * outputs,
                   static_cast<T*>(result.raw_data()) + first * pixels);
    });
  });
  return result;
}

const AddKernel add_max_pool2d(max_pool2d, kCUDA, &max_pool2d_cuda);
const AddKernel add_max_pool2d_backward(max_pool2d_backward, kCUDA, &max_pool2d_backward_cuda);
const AddKernel add_avg_pool2d(avg_pool2d, kCUDA, &avg_pool2d_cuda);
const AddKernel add_avg_pool2d_backward(avg_pool2d_backward, kCUDA, &avg_pool2d_backward_cuda);

}  // namespace

}  // namespace brigade::kernels
