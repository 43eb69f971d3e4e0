// The plain form: each output from its elements, and each gradient back to them.
#include <brigade/kernels/interpolate.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/detail/interpolation.h>
#include <brigade/kernels/elementwise.h>

#include <vector>

namespace brigade::kernels {

namespace {

template <class Axis>
auto all_taps(const Axis& axis) {
  std::vector<decltype(axis.taps(0))> result;
  for (int32_t o = 0; o < axis.out; ++o)
    result.push_back(axis.taps(o));
  return result;
}

Tensor interpolate2d_cpu(const Tensor& x, const Interpolate2dParams& params) {
  Tensor result = empty(check_interpolate(x.sizes(), params), x.options());
  const Tensor source = contiguous(x);
  visit_floating(x.dtype(), "interpolate", [&]<class T>() {
    using C = compute_type<T>;
    const T* in = static_cast<const T*>(source.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    with_axes<C>(x.sizes(), params, [&]<class Axis>(const Axis& rows, const Axis& columns) {
      const auto column_taps = all_taps(columns);
      cpu::parallel_for(
          x.sizes()[0] * x.sizes()[1] * rows.out,
          [&](int64_t begin, int64_t end) {
            for (int64_t line = begin; line < end; ++line) {
              const T* image = in + line / rows.out * rows.in * columns.in;
              const auto row = rows.taps(static_cast<int32_t>(line % rows.out));
              for (int32_t o = 0; o < columns.out; ++o) {
                const auto& column = column_taps[static_cast<size_t>(o)];
                C sum = C(0);
                for (int r = 0; r < Axis::kTaps; ++r) {
                  const T* from = image + int64_t{row.index[r]} * columns.in;
                  C part = C(0);
                  for (int k = 0; k < Axis::kTaps; ++k)
                    part += column.weight[k] * static_cast<C>(from[column.index[k]]);
                  sum += row.weight[r] * part;
                }
                out[line * columns.out + o] = static_cast<T>(sum);
              }
            }
          },
          columns.out * 4);
    });
  });
  return result;
}

Tensor interpolate2d_backward_cpu(const Tensor& grad, const Shape& x_sizes, const Interpolate2dParams& params) {
  check_interpolate_backward(grad, x_sizes, params);
  const Tensor slopes = contiguous(grad);
  // Summed in the compute type and rounded once.
  const Tensor result = empty(x_sizes, is_half(grad.dtype()) ? kFloat32 : grad.dtype());
  fill(result, 0.0);
  visit_floating(grad.dtype(), "interpolate backward", [&]<class T>() {
    using C = compute_type<T>;
    const T* in = static_cast<const T*>(slopes.raw_data());
    C* out = static_cast<C*>(result.raw_data());
    with_axes<C>(x_sizes, params, [&]<class Axis>(const Axis& rows, const Axis& columns) {
      const auto row_taps = all_taps(rows);
      const auto column_taps = all_taps(columns);
      const int64_t outputs = int64_t{rows.out} * columns.out;
      cpu::parallel_for(
          x_sizes[0] * x_sizes[1],
          [&](int64_t begin, int64_t end) {
            for (int64_t plane = begin; plane < end; ++plane) {
              C* image = out + plane * rows.in * columns.in;
              for (int64_t o = 0; o < outputs; ++o) {
                const auto& row = row_taps[static_cast<size_t>(o / columns.out)];
                const auto& column = column_taps[static_cast<size_t>(o % columns.out)];
                const C slope = static_cast<C>(in[plane * outputs + o]);
                for (int r = 0; r < Axis::kTaps; ++r) {
                  for (int k = 0; k < Axis::kTaps; ++k) {
                    image[int64_t{row.index[r]} * columns.in + column.index[k]] +=
                        row.weight[r] * column.weight[k] * slope;
                  }
                }
              }
            }
          },
          outputs * 4);
    });
  });
  return cast(result, grad.dtype());
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Interpolate2dParams&)> interpolate2d("interpolate2d", &interpolate2d_cpu);
constinit Kernel<Tensor(const Tensor&, const Shape&, const Interpolate2dParams&)> interpolate2d_backward(
    "interpolate2d_backward", &interpolate2d_backward_cpu);

}  // namespace brigade::kernels
