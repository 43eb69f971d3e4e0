// Pooling on the CPU, one row of outputs at a time. For sliding windows, element j of all windows of a row is one
// strided run through the input, so that the loops over outputs vectorize; sums are taken down the columns first. 2 x 2
// windows have their own loop.
#include <brigade/kernels/pool.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/pool.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/cpu/vector/sums.h>
#include <brigade/kernels/elementwise.h>

#include <limits>
#include <type_traits>
#include <vector>

namespace brigade::kernels {
namespace {

using Plane = PoolPlane<int64_t>;
using Axis = PoolAxis<int64_t>;

// Zeros in the compute type, for sums that are rounded once.
Tensor wide_zeros(const Shape& sizes, const Tensor& like) {
  Tensor result = empty(sizes, {is_half(like.dtype()) ? kFloat32 : like.dtype(), like.device()});
  fill(result, 0.0);
  return result;
}

// body(first, last) over ranges of planes.
template <class Body>
void for_planes(const PoolPlan& plan, Body&& body) {
  const Plane& p = plan.plane;
  cpu::parallel_for(plan.planes, body, p.pixels() + p.outputs());
}

// Calls run(step), with the stride as a compile-time constant for common strides.
template <class Run>
void with_step(int64_t stride, Run&& run) {
  if (stride == 1) {
    run(std::integral_constant<int64_t, 1>());
  } else if (stride == 2) {
    run(std::integral_constant<int64_t, 2>());
  } else {
    run(stride);
  }
}

// Element j of the windows of a row: outputs o in [begin, end) read the input at o * stride + shift.
struct Run {
  int64_t begin, end, shift;
};
std::vector<Run> runs_of(const Axis& axis) {
  std::vector<Run> runs;
  for (int64_t j = 0; j < axis.kernel; ++j) {
    const int64_t shift = j * axis.dilation - axis.padding;
    const int64_t begin = shift >= 0 ? 0 : (-shift + axis.stride - 1) / axis.stride;
    const int64_t end = shift >= axis.in ? 0 : std::min(axis.out, (axis.in - 1 - shift) / axis.stride + 1);
    if (begin < end) runs.push_back({begin, end, shift});
  }
  return runs;
}

// Runs shorter than this do not vectorize: such rows are processed window by window.
constexpr int64_t kShortRow = 8;

std::vector<PoolRange<int64_t>> windows_of(const Axis& axis) {
  std::vector<PoolRange<int64_t>> windows;
  for (int64_t o = 0; o < axis.out; ++o)
    windows.push_back(axis.window(o));
  return windows;
}

// --- max pooling

// The largest element of each window of a row so far, and its position.
template <class C>
struct Champions {
  // As wide as the values, so that both use the same vectors; planes have fewer than 2^31 elements.
  using Index = std::conditional_t<sizeof(C) == 4, int32_t, int64_t>;
  std::vector<C> values;
  std::vector<Index> places;

  explicit Champions(int64_t outputs) : values(static_cast<size_t>(outputs)), places(static_cast<size_t>(outputs)) {}

  template <class T, class Step>
  void challenge(const T* from, const Run& run, int64_t row_start, Step step) {
    C* const champion = values.data();
    Index* const place = places.data();
    const auto first = static_cast<Index>(row_start + run.shift);
    for (int64_t o = run.begin; o < run.end; ++o) {
      const C candidate = static_cast<C>(from[o * step + run.shift]);
      const bool wins = candidate > champion[o] || candidate != candidate;
      champion[o] = wins ? candidate : champion[o];
      place[o] = wins ? static_cast<Index>(first + static_cast<Index>(o * step)) : place[o];
    }
  }
};

template <class T>
void max_plane_by_runs(const Plane& p, const T* image, T* values, int64_t* indices, const std::vector<Run>& runs,
                       const std::vector<PoolRange<int64_t>>& columns, Champions<compute_type<T>>& champions) {
  using C = compute_type<T>;
  using Index = typename Champions<C>::Index;
  const int64_t out = p.columns.out;
  for (int64_t oh = 0; oh < p.rows.out; ++oh) {
    const PoolRange<int64_t> down = p.rows.window(oh);
    for (size_t o = 0; o < columns.size(); ++o) {
      champions.values[o] = -std::numeric_limits<C>::infinity();
      champions.places[o] = static_cast<Index>(down.begin * p.columns.in + columns[o].begin);
    }
    for (int64_t h = down.begin; h < down.end; h += p.rows.dilation) {
      const int64_t row = h * p.columns.in;
      for (const Run& run : runs)
        with_step(p.columns.stride, [&](auto step) { champions.challenge(image + row, run, row, step); });
    }
    for (int64_t o = 0; o < out; ++o) {
      values[oh * out + o] = static_cast<T>(champions.values[static_cast<size_t>(o)]);
      indices[oh * out + o] = champions.places[static_cast<size_t>(o)];
    }
  }
}

// Windows of two adjacent elements, without gaps or padding.
bool is_by_twos(const Axis& axis) {
  return !axis.adaptive && axis.kernel == 2 && axis.stride == 2 && axis.padding == 0 && axis.dilation == 1 &&
         2 * axis.out <= axis.in;
}

MaxPool max_pool2d_cpu(const Tensor& x, const Pool2dParams& params) {
  const PoolPlan plan = plan_pool(x.sizes(), params, PoolKind::Max);
  const Plane& p = plan.plane;
  const Tensor source = contiguous(x);
  MaxPool result{empty(plan.out_sizes, x.options()), empty(plan.out_sizes, {kInt64, x.device()})};
  const bool by_runs =
      !p.columns.adaptive && p.columns.out >= kShortRow && p.pixels() <= std::numeric_limits<int32_t>::max();
  const bool by_twos = by_runs && p.columns.out >= cpu::kPoolLanes && is_by_twos(p.rows) && is_by_twos(p.columns);
  const std::vector<Run> runs = by_runs ? runs_of(p.columns) : std::vector<Run>();
  const std::vector<PoolRange<int64_t>> columns = windows_of(p.columns);
  visit_floating(x.dtype(), "max_pool2d", [&]<class T>() {
    const T* in = static_cast<const T*>(source.raw_data());
    T* values = static_cast<T*>(result.values.raw_data());
    auto* indices = result.indices.template data_ptr<int64_t>();
    for_planes(plan, [&](int64_t first, int64_t last) {
      Champions<compute_type<T>> champions(p.columns.out);
      for (int64_t plane = first; plane < last; ++plane) {
        const T* image = in + plane * p.pixels();
        int64_t o = plane * p.outputs();
        if constexpr (std::is_same_v<T, float>) {
          if (by_twos) {
            cpu::max_pool_two_by_two(image, p.columns.in, p.rows.out, p.columns.out, values + o, indices + o);
            continue;
          }
        }
        if (by_runs) {
          max_plane_by_runs(p, image, values + o, indices + o, runs, columns, champions);
          continue;
        }
        for (int64_t oh = 0; oh < p.rows.out; ++oh) {
          for (int64_t ow = 0; ow < p.columns.out; ++ow, ++o) {
            const int64_t best = p.largest_at(image, oh, ow);
            values[o] = image[best];
            indices[o] = best;
          }
        }
      }
    });
  });
  return result;
}

Tensor max_pool2d_backward_cpu(const Tensor& grad, const Tensor& indices, const Shape& x_sizes,
                               const Pool2dParams& params) {
  const PoolPlan plan = plan_pool_backward(grad, x_sizes, params, PoolKind::Max);
  const Plane& p = plan.plane;
  const Tensor g = contiguous(grad);
  const Tensor places = contiguous(indices);
  const Tensor result = wide_zeros(x_sizes, grad);
  visit_floating(grad.dtype(), "max_pool2d backward", [&]<class T>() {
    using C = compute_type<T>;
    const T* slope = static_cast<const T*>(g.raw_data());
    const auto* chosen = places.template data_ptr<int64_t>();
    C* out = static_cast<C*>(result.raw_data());
    for_planes(plan, [&](int64_t first, int64_t last) {
      for (int64_t plane = first; plane < last; ++plane) {
        C* image = out + plane * p.pixels();
        for (int64_t o = plane * p.outputs(); o < (plane + 1) * p.outputs(); ++o)
          image[chosen[o]] += static_cast<C>(slope[o]);
      }
    });
  });
  return cast(result, grad.dtype());
}

Tensor max_pool2d_gather_cpu(const Tensor& x, const Tensor& indices) {
  Tensor result = prepare_max_pool_gather(x, indices);
  const Tensor source = contiguous(x);
  const Tensor places = contiguous(indices);
  const int dims = x.dim();
  const int64_t pixels = x.sizes()[dims - 2] * x.sizes()[dims - 1];
  const int64_t outputs = indices.sizes()[dims - 2] * indices.sizes()[dims - 1];
  visit_floating(x.dtype(), "max_pool2d gather", [&]<class T>() {
    const T* in = static_cast<const T*>(source.raw_data());
    const auto* chosen = places.template data_ptr<int64_t>();
    T* out = static_cast<T*>(result.raw_data());
    cpu::parallel_for(
        outputs > 0 ? result.numel() / outputs : 0,
        [&](int64_t first, int64_t last) {
          for (int64_t plane = first; plane < last; ++plane) {
            for (int64_t o = plane * outputs; o < (plane + 1) * outputs; ++o)
              out[o] = in[plane * pixels + chosen[o]];
          }
        },
        outputs);
  });
  return result;
}

// --- average pooling

// Sums a row of column sums into windows, and the reverse.
struct Columns {
  const Axis& axis;
  bool by_windows = axis.adaptive || axis.out < kShortRow;
  std::vector<Run> runs = by_windows ? std::vector<Run>() : runs_of(axis);
  std::vector<PoolRange<int64_t>> windows = by_windows ? windows_of(axis) : std::vector<PoolRange<int64_t>>();

  // sums[o] = the elements of window o.
  template <class C>
  void gather(const C* row, C* sums) const {
    if (by_windows) {
      for (int64_t o = 0; o < axis.out; ++o) {
        const PoolRange<int64_t> at = windows[static_cast<size_t>(o)];
        C sum = C(0);
        for (int64_t w = at.begin; w < at.end; ++w)
          sum += row[w];
        sums[o] = sum;
      }
      return;
    }
    std::fill(sums, sums + axis.out, C(0));
    for (const Run& run : runs) {
      with_step(axis.stride, [&](auto step) {
        for (int64_t o = run.begin; o < run.end; ++o)
          sums[o] += row[o * step + run.shift];
      });
    }
  }
  // row[w] = the sum of the shares of the windows over element w.
  template <class C>
  void scatter(const C* shares, C* row) const {
    std::fill(row, row + axis.in, C(0));
    for (int64_t o = 0; by_windows && o < axis.out; ++o) {
      const PoolRange<int64_t> at = windows[static_cast<size_t>(o)];
      for (int64_t w = at.begin; w < at.end; ++w)
        row[w] += shares[o];
    }
    for (const Run& run : runs) {
      with_step(axis.stride, [&](auto step) {
        for (int64_t o = run.begin; o < run.end; ++o)
          row[o * step + run.shift] += shares[o];
      });
    }
  }
};

// Divides each sum of a row of windows by its count.
template <class C>
void divide(const Plane& p, int64_t oh, const std::vector<C>& column_counts, C* sums) {
  const C rows = p.divisor != 0 ? static_cast<C>(p.divisor) : static_cast<C>(p.rows.counted(oh));
  for (size_t o = 0; o < column_counts.size(); ++o)
    sums[o] /= rows * column_counts[o];
}
template <class C>
std::vector<C> counts_of(const Plane& p) {
  std::vector<C> counts(static_cast<size_t>(p.columns.out), C(1));
  for (int64_t o = 0; p.divisor == 0 && o < p.columns.out; ++o)
    counts[static_cast<size_t>(o)] = static_cast<C>(p.columns.counted(o));
  return counts;
}

// Sums in lanes, so that the loop vectorizes.
template <class T>
compute_type<T> sum_of(const T* values, int64_t count) {
  using C = compute_type<T>;
  constexpr int64_t kLanes = 64;
  C lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k)
      lanes[k] += static_cast<C>(values[i + k]);
  }
  for (int64_t k = 0; i < count; ++i, ++k)
    lanes[k] += static_cast<C>(values[i]);
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t k = 0; k < width; ++k)
      lanes[k] += lanes[k + width];
  }
  return lanes[0];
}

Tensor avg_pool2d_cpu(const Tensor& x, const Pool2dParams& params) {
  const PoolPlan plan = plan_pool(x.sizes(), params, PoolKind::Average);
  const Plane& p = plan.plane;
  const Tensor source = contiguous(x);
  Tensor result = empty(plan.out_sizes, x.options());
  const bool covers = params.output_size == std::array<int64_t, 2>{1, 1};  // one window is the whole plane
  const Columns columns{p.columns};
  visit_floating(x.dtype(), "avg_pool2d", [&]<class T>() {
    using C = compute_type<T>;
    const T* in = static_cast<const T*>(source.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    const std::vector<C> counts = counts_of<C>(p);
    for_planes(plan, [&](int64_t first, int64_t last) {
      for (int64_t plane = first; covers && plane < last; ++plane)
        out[plane] = static_cast<T>(sum_of(in + plane * p.pixels(), p.pixels()) / static_cast<C>(p.count(0, 0)));
      if (covers) return;
      std::vector<C> row(static_cast<size_t>(p.columns.in));
      std::vector<C> sums(static_cast<size_t>(p.columns.out));
      for (int64_t out_row = first * p.rows.out; out_row < last * p.rows.out; ++out_row) {
        const int64_t oh = out_row % p.rows.out;
        const T* image = in + out_row / p.rows.out * p.pixels();
        const PoolRange<int64_t> down = p.rows.window(oh);
        std::fill(row.begin(), row.end(), C(0));
        for (int64_t h = down.begin; h < down.end; ++h) {
          const T* from = image + h * p.columns.in;
          for (int64_t w = 0; w < p.columns.in; ++w)
            row[static_cast<size_t>(w)] += static_cast<C>(from[w]);
        }
        columns.gather(row.data(), sums.data());
        divide(p, oh, counts, sums.data());
        for (int64_t o = 0; o < p.columns.out; ++o)
          out[out_row * p.columns.out + o] = static_cast<T>(sums[static_cast<size_t>(o)]);
      }
    });
  });
  return result;
}

Tensor avg_pool2d_backward_cpu(const Tensor& grad, const Shape& x_sizes, const Pool2dParams& params) {
  const PoolPlan plan = plan_pool_backward(grad, x_sizes, params, PoolKind::Average);
  const Plane& p = plan.plane;
  const Tensor g = contiguous(grad);
  const Tensor result = wide_zeros(x_sizes, grad);
  const Columns columns{p.columns};
  visit_floating(grad.dtype(), "avg_pool2d backward", [&]<class T>() {
    using C = compute_type<T>;
    const T* slope = static_cast<const T*>(g.raw_data());
    C* out = static_cast<C*>(result.raw_data());
    const std::vector<C> counts = counts_of<C>(p);
    for_planes(plan, [&](int64_t first, int64_t last) {
      std::vector<C> row(static_cast<size_t>(p.columns.in));
      std::vector<C> shares(static_cast<size_t>(p.columns.out));
      for (int64_t out_row = first * p.rows.out; out_row < last * p.rows.out; ++out_row) {
        const int64_t oh = out_row % p.rows.out;
        C* image = out + out_row / p.rows.out * p.pixels();
        for (int64_t o = 0; o < p.columns.out; ++o)
          shares[static_cast<size_t>(o)] = static_cast<C>(slope[out_row * p.columns.out + o]);
        divide(p, oh, counts, shares.data());
        columns.scatter(shares.data(), row.data());
        const PoolRange<int64_t> down = p.rows.window(oh);
        for (int64_t h = down.begin; h < down.end; ++h) {
          C* to = image + h * p.columns.in;
          for (int64_t w = 0; w < p.columns.in; ++w)
            to[w] += row[static_cast<size_t>(w)];
        }
      }
    });
  });
  return cast(result, grad.dtype());
}

}  // namespace

constinit Kernel<MaxPool(const Tensor&, const Pool2dParams&)> max_pool2d("max_pool2d", &max_pool2d_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Shape&, const Pool2dParams&)> max_pool2d_backward(
    "max_pool2d_backward", &max_pool2d_backward_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&)> max_pool2d_gather("max_pool2d_gather", &max_pool2d_gather_cpu);
constinit Kernel<Tensor(const Tensor&, const Pool2dParams&)> avg_pool2d("avg_pool2d", &avg_pool2d_cpu);
constinit Kernel<Tensor(const Tensor&, const Shape&, const Pool2dParams&)> avg_pool2d_backward(
    "avg_pool2d_backward", &avg_pool2d_backward_cpu);

}  // namespace brigade::kernels
