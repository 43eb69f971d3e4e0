// Interpolation on the CPU, row by row, and its gradients.
#include <brigade/kernels/pool.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/pool.h>
#include <brigade/kernels/cpu/detail/parallel.h>
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

// mixed = the weighted sum of the rows of `image` for one output row.
template <class T, int count, class C>
void mix_rows(const T* image, const Taps<count, C>& taps, std::vector<C>& mixed) {
  const auto width = static_cast<int64_t>(mixed.size());
  for (int r = 0; r < count; ++r) {
    const T* row = image + taps.index[r] * width;
    for (int64_t w = 0; w < width; ++w)
      mixed[static_cast<size_t>(w)] =
          (r == 0 ? C(0) : mixed[static_cast<size_t>(w)]) + taps.weight[r] * static_cast<C>(row[w]);
  }
}
// The transpose of mix_rows.
template <int count, class C>
void add_to_rows(C* image, const Taps<count, C>& taps, const std::vector<C>& shares) {
  const auto width = static_cast<int64_t>(shares.size());
  for (int r = 0; r < count; ++r) {
    C* row = image + taps.index[r] * width;
    for (int64_t w = 0; w < width; ++w)
      row[w] += taps.weight[r] * shares[static_cast<size_t>(w)];
  }
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
            std::vector<C> mixed(static_cast<size_t>(columns.in));
            for (int64_t out_row = begin; out_row < end; ++out_row) {
              const T* image = in + out_row / rows.out * rows.in * columns.in;
              T* to = out + out_row * columns.out;
              const auto row = rows.taps(static_cast<int32_t>(out_row % rows.out));
              if constexpr (Axis::kTaps == 1) {
                const T* from = image + int64_t{row.index[0]} * columns.in;
                for (int32_t o = 0; o < columns.out; ++o)
                  to[o] = from[column_taps[static_cast<size_t>(o)].index[0]];
                continue;
              }
              // Mix rows first, since that loop vectorizes.
              mix_rows(image, row, mixed);
              for (int32_t o = 0; o < columns.out; ++o) {
                const auto& column = column_taps[static_cast<size_t>(o)];
                C sum = C(0);
                for (int k = 0; k < Axis::kTaps; ++k)
                  sum += column.weight[k] * mixed[static_cast<size_t>(column.index[k])];
                to[o] = static_cast<T>(sum);
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
      const auto column_taps = all_taps(columns);
      cpu::parallel_for(
          x_sizes[0] * x_sizes[1],
          [&](int64_t begin, int64_t end) {
            std::vector<C> shares(static_cast<size_t>(columns.in));
            for (int64_t out_row = begin * rows.out; out_row < end * rows.out; ++out_row) {
              std::fill(shares.begin(), shares.end(), C(0));
              for (int32_t o = 0; o < columns.out; ++o) {
                const auto& column = column_taps[static_cast<size_t>(o)];
                const C slope = static_cast<C>(in[out_row * columns.out + o]);
                for (int k = 0; k < Axis::kTaps; ++k)
                  shares[static_cast<size_t>(column.index[k])] += column.weight[k] * slope;
              }
              add_to_rows(out + out_row / rows.out * rows.in * columns.in,
                          rows.taps(static_cast<int32_t>(out_row % rows.out)), shares);
            }
          },
          int64_t{rows.out} * columns.out * 4);
    });
  });
  return cast(result, grad.dtype());
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Interpolate2dParams&)> interpolate2d("interpolate2d", &interpolate2d_cpu);
constinit Kernel<Tensor(const Tensor&, const Shape&, const Interpolate2dParams&)> interpolate2d_backward(
    "interpolate2d_backward", &interpolate2d_backward_cpu);

}  // namespace brigade::kernels
