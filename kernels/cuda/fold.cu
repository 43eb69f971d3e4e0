// CUDA kernels of fold and unfold: one thread per element of the result. Fold gathers: each pixel visits the windows
// that contain it, in order, so that no two threads add to the same element.
#include <brigade/kernels/conv.h>

#include <brigade/kernels/common/conv.h>
#include <brigade/kernels/cuda/detail/planes.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>

namespace brigade::kernels {
namespace {

struct Columns {
  int32_t height, width, out_h, out_w;
  int32_t kernel[2], stride[2], padding[2], dilation[2];
};

template <class T>
__global__ void __launch_bounds__(cuda::kPlaneThreads)
    unfold2d_kernel(uint32_t count, Columns s, const T* x, T* columns) {
  const uint32_t i = blockIdx.x * cuda::kPlaneThreads + threadIdx.x;
  if (i >= count) return;
  // The windows for one kernel position (row, column) of a plane form a plane themselves.
  const cuda::PlanePlace out(i, s.out_h, s.out_w);
  const uint32_t plane_row = out.plane / static_cast<uint32_t>(s.kernel[1]);
  const int32_t column = static_cast<int32_t>(out.plane - plane_row * static_cast<uint32_t>(s.kernel[1]));
  const uint32_t plane = plane_row / static_cast<uint32_t>(s.kernel[0]);
  const int32_t row = static_cast<int32_t>(plane_row - plane * static_cast<uint32_t>(s.kernel[0]));
  const int32_t h = out.h * s.stride[0] - s.padding[0] + row * s.dilation[0];
  const int32_t w = out.w * s.stride[1] - s.padding[1] + column * s.dilation[1];
  const bool inside = h >= 0 && h < s.height && w >= 0 && w < s.width;
  columns[i] = inside ? x[(static_cast<int64_t>(plane) * s.height + h) * s.width + w] : static_cast<T>(0.0F);
}

template <class T>
__global__ void __launch_bounds__(cuda::kPlaneThreads)
    fold2d_kernel(uint32_t count, Columns s, const T* columns, T* x) {
  using C = compute_type<T>;
  const uint32_t i = blockIdx.x * cuda::kPlaneThreads + threadIdx.x;
  if (i >= count) return;
  const cuda::PlanePlace in(i, s.height, s.width);
  const T* own = columns + static_cast<int64_t>(in.plane) * s.kernel[0] * s.kernel[1] * s.out_h * s.out_w;
  C sum = C(0);
  for (int32_t row = 0; row < s.kernel[0]; ++row) {
    const int32_t h = in.h + s.padding[0] - row * s.dilation[0];
    if (h < 0 || h % s.stride[0] != 0 || h / s.stride[0] >= s.out_h) continue;
    for (int32_t column = 0; column < s.kernel[1]; ++column) {
      const int32_t w = in.w + s.padding[1] - column * s.dilation[1];
      if (w < 0 || w % s.stride[1] != 0 || w / s.stride[1] >= s.out_w) continue;
      const int32_t window_row = (row * s.kernel[1] + column) * s.out_h + h / s.stride[0];
      sum += static_cast<C>(own[static_cast<int64_t>(window_row) * s.out_w + w / s.stride[1]]);
    }
  }
  x[i] = static_cast<T>(sum);
}

Columns columns_of(const FoldPlan& plan) {
  const auto number = [](int64_t value) { return static_cast<int32_t>(value); };
  const FoldParams& p = plan.params;
  return {number(plan.height),
          number(plan.width),
          number(plan.out_h),
          number(plan.out_w),
          {number(p.kernel_size[0]), number(p.kernel_size[1])},
          {number(p.stride[0]), number(p.stride[1])},
          {number(p.padding[0]), number(p.padding[1])},
          {number(p.dilation[0]), number(p.dilation[1])}};
}

Tensor unfold2d_cuda(const Tensor& x, const FoldParams& params) {
  const FoldPlan plan = prepare_unfold(x, params);
  const Tensor source = contiguous(x);
  visit_floating(x.dtype(), "unfold", [&]<class T>() {
    cuda::for_planes(
        "unfold", plan.planes, std::max(plan.pixels(), plan.elements()), [&](int64_t first, int64_t planes) {
          cuda::launch_planes("unfold2d", x.device(), planes * plan.elements(), &unfold2d_kernel<T>, columns_of(plan),
                              static_cast<const T*>(source.raw_data()) + first * plan.pixels(),
                              static_cast<T*>(plan.result.raw_data()) + first * plan.elements());
        });
  });
  return plan.result;
}

Tensor fold2d_cuda(const Tensor& columns, const std::array<int64_t, 2>& output_size, const FoldParams& params) {
  const FoldPlan plan = prepare_fold(columns, output_size, params);
  const Tensor source = contiguous(columns);
  visit_floating(columns.dtype(), "fold", [&]<class T>() {
    cuda::for_planes("fold", plan.planes, std::max(plan.pixels(), plan.elements()), [&](int64_t first, int64_t planes) {
      cuda::launch_planes("fold2d", columns.device(), planes * plan.pixels(), &fold2d_kernel<T>, columns_of(plan),
                          static_cast<const T*>(source.raw_data()) + first * plan.elements(),
                          static_cast<T*>(plan.result.raw_data()) + first * plan.pixels());
    });
  });
  return plan.result;
}

const AddKernel add_unfold2d(unfold2d, kCUDA, &unfold2d_cuda);
const AddKernel add_fold2d(fold2d, kCUDA, &fold2d_cuda);

}  // namespace
}  // namespace brigade::kernels
