// CUDA kernels of pool.h: one thread per element of the result. Backward gathers: each input element visits the windows
// that contain it, in order, so that no two threads add to the same element.
#include <brigade/kernels/pool.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/pool.h>
#include <brigade/kernels/cuda/detail/planes.h>
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
  const cuda::PlanePlace out(i, plane.rows.out, plane.columns.out);
  const T* image = x + static_cast<int64_t>(out.plane) * plane.pixels();
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
  const cuda::PlanePlace in(i, plane.rows.in, plane.columns.in);
  const int64_t first = static_cast<int64_t>(in.plane) * plane.outputs();
  const PoolRange<int32_t> down = plane.rows.outputs_over(in.h);
  const PoolRange<int32_t> along = plane.columns.outputs_over(in.w);
  const int64_t own = in.h * plane.columns.in + in.w;
  C sum = C(0);
  for (int32_t oh = down.begin; oh < down.end; ++oh) {
    for (int32_t ow = along.begin; ow < along.end; ++ow) {
      const int64_t o = first + oh * plane.columns.out + ow;
      if (indices[o] == own) sum += static_cast<C>(grad[o]);
    }
  }
  result[i] = static_cast<T>(sum);
}

// `pixels` and `outputs` are those of one plane.
template <class T>
__global__ void __launch_bounds__(cuda::kPlaneThreads)
    max_pool2d_gather_kernel(uint32_t count, uint32_t pixels, uint32_t outputs, const T* x, const int64_t* indices,
                             T* result) {
  const uint32_t i = blockIdx.x * cuda::kPlaneThreads + threadIdx.x;
  if (i >= count) return;
  result[i] = x[static_cast<int64_t>(i / outputs) * pixels + indices[i]];
}

template <class T>
__global__ void __launch_bounds__(cuda::kPlaneThreads)
    avg_pool2d_kernel(uint32_t count, Plane plane, const T* x, T* result) {
  using C = compute_type<T>;
  const uint32_t i = blockIdx.x * cuda::kPlaneThreads + threadIdx.x;
  if (i >= count) return;
  const cuda::PlanePlace out(i, plane.rows.out, plane.columns.out);
  const T* image = x + static_cast<int64_t>(out.plane) * plane.pixels();
  const PoolRange<int32_t> down = plane.rows.window(out.h);
  const PoolRange<int32_t> along = plane.columns.window(out.w);
  C sum = C(0);
  for (int32_t h = down.begin; h < down.end; ++h) {
    for (int32_t w = along.begin; w < along.end; ++w)
      sum += static_cast<C>(image[h * plane.columns.in + w]);
  }
  result[i] = static_cast<T>(sum / static_cast<C>(plane.count(out.h, out.w)));
}

template <class T>
__global__ void __launch_bounds__(cuda::kPlaneThreads)
    avg_pool2d_backward_kernel(uint32_t count, Plane plane, const T* grad, T* result) {
  using C = compute_type<T>;
  const uint32_t i = blockIdx.x * cuda::kPlaneThreads + threadIdx.x;
  if (i >= count) return;
  const cuda::PlanePlace in(i, plane.rows.in, plane.columns.in);
  const T* slopes = grad + static_cast<int64_t>(in.plane) * plane.outputs();
  const PoolRange<int32_t> down = plane.rows.outputs_over(in.h);
  const PoolRange<int32_t> along = plane.columns.outputs_over(in.w);
  C sum = C(0);
  for (int32_t oh = down.begin; oh < down.end; ++oh) {
    const T* row = slopes + oh * plane.columns.out;
    for (int32_t ow = along.begin; ow < along.end; ++ow)
      sum += static_cast<C>(row[ow]) / static_cast<C>(plane.count(oh, ow));
  }
  result[i] = static_cast<T>(sum);
}

// A plan in the form that the kernels take.
struct Planes {
  Plane plane;
  int64_t count, pixels, outputs;  // pixels and outputs of one plane

  explicit Planes(const PoolPlan& plan)
      : plane{narrow(plan.plane.rows), narrow(plan.plane.columns), number(plan.plane.divisor)},
        count(plan.planes),
        pixels(plan.plane.pixels()),
        outputs(plan.plane.outputs()) {}

  // Calls run(first, planes).
  template <class Run>
  void for_parts(const char* what, Run&& run) const {
    cuda::for_planes(what, count, std::max(pixels, outputs), run);
  }

 private:
  static int32_t number(int64_t value) { return static_cast<int32_t>(value); }
  static PoolAxis<int32_t> narrow(const PoolAxis<int64_t>& a) {
    return {number(a.in),      number(a.out),      number(a.kernel), number(a.stride),
            number(a.padding), number(a.dilation), a.adaptive,       a.count_padding};
  }
};

MaxPool max_pool2d_cuda(const Tensor& x, const Pool2dParams& params) {
  const PoolPlan plan = plan_pool(x.sizes(), params, PoolKind::Max);
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
  const Planes p(plan_pool_backward(grad, x_sizes, params, PoolKind::Max));
  const Tensor slopes = contiguous(grad);
  const Tensor places = contiguous(indices);
  Tensor result = empty(x_sizes, grad.options());
  visit_floating(grad.dtype(), "max_pool2d backward", [&]<class T>() {
    p.for_parts("max_pool2d", [&](int64_t first, int64_t planes) {
      cuda::launch_planes("max_pool2d_backward", grad.device(), planes * p.pixels, &max_pool2d_backward_kernel<T>,
                          p.plane, static_cast<const T*>(slopes.raw_data()) + first * p.outputs,
                          static_cast<const int64_t*>(places.raw_data()) + first * p.outputs,
                          static_cast<T*>(result.raw_data()) + first * p.pixels);
    });
  });
  return result;
}

Tensor max_pool2d_gather_cuda(const Tensor& x, const Tensor& indices) {
  Tensor result = prepare_max_pool_gather(x, indices);
  const Tensor source = contiguous(x);
  const Tensor places = contiguous(indices);
  const int dims = x.dim();
  const int64_t pixels = x.sizes()[dims - 2] * x.sizes()[dims - 1];
  const int64_t outputs = indices.sizes()[dims - 2] * indices.sizes()[dims - 1];
  const int64_t count = outputs > 0 ? result.numel() / outputs : 0;
  visit_floating(x.dtype(), "max_pool2d gather", [&]<class T>() {
    cuda::for_planes("max_pool2d gather", count, std::max(pixels, outputs), [&](int64_t first, int64_t planes) {
      cuda::launch_planes("max_pool2d_gather", x.device(), planes * outputs, &max_pool2d_gather_kernel<T>,
                          static_cast<uint32_t>(pixels), static_cast<uint32_t>(outputs),
                          static_cast<const T*>(source.raw_data()) + first * pixels,
                          static_cast<const int64_t*>(places.raw_data()) + first * outputs,
                          static_cast<T*>(result.raw_data()) + first * outputs);
    });
  });
  return result;
}

Tensor avg_pool2d_cuda(const Tensor& x, const Pool2dParams& params) {
  const PoolPlan plan = plan_pool(x.sizes(), params, PoolKind::Average);
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
  const Planes p(plan_pool_backward(grad, x_sizes, params, PoolKind::Average));
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
const AddKernel add_max_pool2d_gather(max_pool2d_gather, kCUDA, &max_pool2d_gather_cuda);
const AddKernel add_avg_pool2d(avg_pool2d, kCUDA, &avg_pool2d_cuda);
const AddKernel add_avg_pool2d_backward(avg_pool2d_backward, kCUDA, &avg_pool2d_backward_cuda);

}  // namespace
}  // namespace brigade::kernels
