// CUDA kernels of interpolation: one thread per element of the result. Backward gathers: each input element visits the
// outputs that it may contribute to, in order, so that no two threads add to the same element.
#include <brigade/kernels/pool.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/pool.h>
#include <brigade/kernels/cuda/detail/planes.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>

namespace brigade::kernels {
namespace {

template <class T, class Axis>
__global__ void __launch_bounds__(cuda::kPlaneThreads)
    interpolate2d_kernel(uint32_t count, Axis rows, Axis columns, const T* x, T* result) {
  using C = compute_type<T>;
  const uint32_t i = blockIdx.x * cuda::kPlaneThreads + threadIdx.x;
  if (i >= count) return;
  const cuda::PlanePlace out(i, rows.out, columns.out);
  const T* image = x + static_cast<int64_t>(out.plane) * rows.in * columns.in;
  const auto row = rows.taps(out.h);
  const auto column = columns.taps(out.w);
  C sum = C(0);
#pragma unroll
  for (int r = 0; r < Axis::kTaps; ++r) {
    const T* from = image + row.index[r] * columns.in;
    C part = C(0);
#pragma unroll
    for (int k = 0; k < Axis::kTaps; ++k)
      part += column.weight[k] * static_cast<C>(from[column.index[k]]);
    sum += row.weight[r] * part;
  }
  result[i] = static_cast<T>(sum);
}

// The outputs that element i contributes to.
template <class Axis>
__device__ OutputRange exact_outputs_of(const Axis& axis, int32_t i) {
  using C = typename Axis::C;
  OutputRange range = axis.outputs_of(i);
  while (range.begin < range.end && axis.taps(range.begin).weight_of(i) == C(0))
    ++range.begin;
  while (range.begin < range.end && axis.taps(range.end - 1).weight_of(i) == C(0))
    --range.end;
  return range;
}
// The weight of element i in output o of that range.
template <class Axis>
__device__ typename Axis::C weight_in(const Axis& axis, int32_t o, int32_t i) {
  if constexpr (Axis::kTaps == 1) return typename Axis::C(1);
  return axis.taps(o).weight_of(i);
}

template <class T, class Axis>
__global__ void __launch_bounds__(cuda::kPlaneThreads)
    interpolate2d_backward_kernel(uint32_t count, Axis rows, Axis columns, const T* grad, T* result) {
  using C = compute_type<T>;
  const uint32_t i = blockIdx.x * cuda::kPlaneThreads + threadIdx.x;
  if (i >= count) return;
  const cuda::PlanePlace in(i, rows.in, columns.in);
  const T* slopes = grad + static_cast<int64_t>(in.plane) * rows.out * columns.out;
  const OutputRange over_rows = exact_outputs_of(rows, in.h);
  const OutputRange over_columns = exact_outputs_of(columns, in.w);
  C sum = C(0);
  for (int32_t oh = over_rows.begin; oh < over_rows.end; ++oh) {
    const T* row = slopes + oh * columns.out;
    C part = C(0);
    for (int32_t ow = over_columns.begin; ow < over_columns.end; ++ow)
      part += weight_in(columns, ow, in.w) * static_cast<C>(row[ow]);
    sum += weight_in(rows, oh, in.h) * part;
  }
  result[i] = static_cast<T>(sum);
}

Tensor interpolate2d_cuda(const Tensor& x, const Interpolate2dParams& params) {
  const Shape sizes = check_interpolate(x.sizes(), params);
  Tensor result = empty(sizes, x.options());
  const Tensor source = contiguous(x);
  const int64_t pixels = x.sizes()[2] * x.sizes()[3];
  const int64_t outputs = sizes[2] * sizes[3];
  visit_floating(x.dtype(), "interpolate", [&]<class T>() {
    with_axes<compute_type<T>>(x.sizes(), params, [&]<class Axis>(const Axis& rows, const Axis& columns) {
      cuda::for_planes(
          "interpolate", sizes[0] * sizes[1], std::max(pixels, outputs), [&](int64_t first, int64_t planes) {
            cuda::launch_planes("interpolate2d", x.device(), planes * outputs, &interpolate2d_kernel<T, Axis>, rows,
                                columns, static_cast<const T*>(source.raw_data()) + first * pixels,
                                static_cast<T*>(result.raw_data()) + first * outputs);
          });
    });
  });
  return result;
}

Tensor interpolate2d_backward_cuda(const Tensor& grad, const Shape& x_sizes, const Interpolate2dParams& params) {
  check_interpolate_backward(grad, x_sizes, params);
  Tensor result = empty(x_sizes, grad.options());
  const Tensor slopes = contiguous(grad);
  const int64_t pixels = x_sizes[2] * x_sizes[3];
  const int64_t outputs = params.size[0] * params.size[1];
  visit_floating(grad.dtype(), "interpolate backward", [&]<class T>() {
    with_axes<compute_type<T>>(x_sizes, params, [&]<class Axis>(const Axis& rows, const Axis& columns) {
      cuda::for_planes("interpolate", x_sizes[0] * x_sizes[1], std::max(pixels, outputs),
                       [&](int64_t first, int64_t planes) {
                         cuda::launch_planes("interpolate2d_backward", grad.device(), planes * pixels,
                                             &interpolate2d_backward_kernel<T, Axis>, rows, columns,
                                             static_cast<const T*>(slopes.raw_data()) + first * outputs,
                                             static_cast<T*>(result.raw_data()) + first * pixels);
                       });
    });
  });
  return result;
}

const AddKernel add_interpolate2d(interpolate2d, kCUDA, &interpolate2d_cuda);
const AddKernel add_interpolate2d_backward(interpolate2d_backward, kCUDA, &interpolate2d_backward_cuda);

}  // namespace
}  // namespace brigade::kernels
