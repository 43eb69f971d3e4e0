// The CUDA column of pool.h: a thread per element of the result. Backward gathers: each element of the input visits the
// windows that contain it, in their order, so that nothing is added by two threads.
#include <brigade/kernels/pool.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cuda/detail/planes.h>
#include <brigade/kernels/detail/pool.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>

namespace brigade::kernels {

namespace {

using Plane = PoolPlane<int32_t>;

template <class T>
__global__ void __launch_bounds__(cuda::kPlaneThreads)
    max_pool2d_kernel(uint32_t count, Plane plane, const T* x, T* values, int64_t* indices) {
  const uint32_t i = blockIdx.x * cuda::kPlaneThreads + threadIdx.x;
  if (i >= count) return;
  const cuda::PlanePlace out(i, plane.out_height, plane.out_width);
  const T* image = x + static_cast<int64_t>(out.plane) * plane.height * plane.width;
  const int32_t best = plane.largest_at(image, out.h, out.w);
  values[i] = image[best];
  indices[i] = best;
}

template <class T>
__global__ void __launch_bounds__(cuda::kPlaneThreads)
    max_pool2d_backward_kernel(uint32_t count, Plane plane, const T* grad, const int64_t* indices, T* result) {
  using C = compute_type<T>;
  const uint32_t i = blockIdx.x * cuda::kPlaneThreads + threadIdx.x;
  if (i >= count) return;
  const cuda::PlanePlace in(i, plane.height, plane.width);
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
__global__ void __launch_bounds__(cuda::kPlaneThreads)
    avg_pool2d_kernel(uint32_t count, Plane plane, const T* x, T* result) {
  const uint32_t i = blockIdx.x * cuda::kPlaneThreads + threadIdx.x;
  if (i >= count) return;
  const cuda::PlanePlace out(i, plane.out_height, plane.out_width);
  const T* image = x + static_cast<int64_t>(out.plane) * plane.height * plane.width;
  result[i] = static_cast<T>(plane.average(image, out.h, out.w));
}

template <class T>
__global__ void __launch_bounds__(cuda::kPlaneThreads)
    avg_pool2d_backward_kernel(uint32_t count, Plane plane, const T* grad, T* result) {
  using C = compute_type<T>;
  const uint32_t i = blockIdx.x * cuda::kPlaneThreads + threadIdx.x;
  if (i >= count) return;
  const cuda::PlanePlace in(i, plane.height, plane.width);
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

// A plan in the numbers that the kernels take.
struct Planes {
  Plane plane;
  int64_t count, pixels, outputs;  // pixels and outputs of one plane

  explicit Planes(const PoolPlan& plan)
      : plane(narrow(plan.plane)),
        count(plan.planes),
        pixels(plan.plane.height * plan.plane.width),
        outputs(plan.plane.out_height * plan.plane.out_width) {}

  // Calls run(first, planes).
  template <class Run>
  void for_parts(const char* what, Run&& run) const {
    cuda::for_planes(what, count, std::max(pixels, outputs), run);
  }

 private:
  static Plane narrow(const PoolPlane<int64_t>& p) {
    const auto number = [](int64_t value) { return static_cast<int32_t>(value); };
    return {number(p.height),
            number(p.width),
            number(p.out_height),
            number(p.out_width),
            {number(p.kernel[0]), number(p.kernel[1])},
            {number(p.stride[0]), number(p.stride[1])},
            {number(p.padding[0]), number(p.padding[1])},
            p.count_include_pad};
  }
};

MaxPool max_pool2d_cuda(const Tensor& x, const Pool2dParams& params) {
  const PoolPlan plan = plan_pool(x.sizes(), params, "max_pool2d");
  const Planes p(plan);
  const Tensor source = contiguous(x);
  MaxPool result{empty(plan.out_sizes, x.options()), empty(plan.out_sizes, {kInt64, x.device()})};
  visit_floating(x.dtype(), "max_pool2d", [&]<class T>() {
    p.for_parts("max_pool2d", [&](int64_t first, int64_t planes) {
      cuda::launch_planes("max_pool2d", x.device(), planes * p.outputs, &max_pool2d_kernel<T>, p.plane,
                          static_cast<const T*>(source.raw_data()) + first * p.pixels,
                          static_cast<T*>(result.values.raw_data()) + first * p.outputs,
                          static_cast<int64_t*>(result.indices.raw_data()) + first * p.outputs);
    });
  });
  return result;
}

Tensor max_pool2d_backward_cuda(const Tensor& grad, const Tensor& indices, const Shape& x_sizes,
                                const Pool2dParams& params) {
  const Planes p(plan_pool_backward(grad, x_sizes, params, "max_pool2d"));
  const Tensor slopes = contiguous(grad);
  Tensor result = empty(x_sizes, grad.options());
  visit_floating(grad.dtype(), "max_pool2d backward", [&]<class T>() {
    p.for_parts("max_pool2d", [&](int64_t first, int64_t planes) {
      cuda::launch_planes("max_pool2d_backward", grad.device(), planes * p.pixels, &max_pool2d_backward_kernel<T>,
                          p.plane, static_cast<const T*>(slopes.raw_data()) + first * p.outputs,
                          static_cast<const int64_t*>(indices.raw_data()) + first * p.outputs,
                          static_cast<T*>(result.raw_data()) + first * p.pixels);
    });
  });
  return result;
}

Tensor avg_pool2d_cuda(const Tensor& x, const Pool2dParams& params) {
  const PoolPlan plan = plan_pool(x.sizes(), params, "avg_pool2d");
  const Planes p(plan);
  const Tensor source = contiguous(x);
  Tensor result = empty(plan.out_sizes, x.options());
  visit_floating(x.dtype(), "avg_pool2d", [&]<class T>() {
    p.for_parts("avg_pool2d", [&](int64_t first, int64_t planes) {
      cuda::launch_planes("avg_pool2d", x.device(), planes * p.outputs, &avg_pool2d_kernel<T>, p.plane,
                          static_cast<const T*>(source.raw_data()) + first * p.pixels,
                          static_cast<T*>(result.raw_data()) + first * p.outputs);
    });
  });
  return result;
}

Tensor avg_pool2d_backward_cuda(const Tensor& grad, const Shape& x_sizes, const Pool2dParams& params) {
  const Planes p(plan_pool_backward(grad, x_sizes, params, "avg_pool2d"));
  const Tensor slopes = contiguous(grad);
  Tensor result = empty(x_sizes, grad.options());
  visit_floating(grad.dtype(), "avg_pool2d backward", [&]<class T>() {
    p.for_parts("avg_pool2d", [&](int64_t first, int64_t planes) {
      cuda::launch_planes("avg_pool2d_backward", grad.device(), planes * p.pixels, &avg_pool2d_backward_kernel<T>,
                          p.plane, static_cast<const T*>(slopes.raw_data()) + first * p.outputs,
                          static_cast<T*>(result.raw_data()) + first * p.pixels);
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
