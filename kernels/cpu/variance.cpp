// Variances on the CPU: moments of short blocks around a center near their mean, combined in float64.
#include <brigade/kernels/reduce.h>

#include <brigade/kernels/common/reducers.h>
#include <brigade/kernels/cpu/detail/reduce_slices.h>
#include <brigade/kernels/cpu/vector/sums.h>

#include <algorithm>
#include <cmath>

namespace brigade::kernels {
namespace {

// Moments from sums of distances around a center near the mean; the distance of the center from the mean is corrected.
template <class C, class Sum>
Moments<double> moments_around(int64_t n, C center, Sum distances, Sum squares) {
  const auto count = static_cast<double>(n);
  const double off = static_cast<double>(distances) / count;
  return {count, static_cast<double>(center) + off, std::max(static_cast<double>(squares) - off * off * count, 0.0)};
}

// Moments of elements `step` apart, in float64: for infinities, NaNs, and squares beyond the range of float.
template <class T>
Moments<double> moments_in_double(const T* x, int64_t n, int64_t step) {
  const auto value = [=](int64_t i) { return static_cast<double>(static_cast<compute_type<T>>(x[i * step])); };
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += value(i);
  const auto count = static_cast<double>(n);
  const double mean = sum / count;
  for (int64_t i = 0; i < n; ++i) {
    const double distance = value(i) - mean;
    squares += distance * distance;
  }
  return {count, mean, squares};
}

// Splits a row into blocks that stay in the cache for the second pass. The first pass sums distances from the first
// element, so that no digits are lost if the mean is far from 0.
template <class T>
Moments<double> moments_of_row(const T* x, int64_t n) {
  using C = compute_type<T>;
  constexpr int64_t kBlock = 4096;
  if (n > kBlock) {
    const int64_t half = (n / 2 + kBlock - 1) / kBlock * kBlock;
    return join_moments(moments_of_row(x, half), moments_of_row(x + half, n - half));
  }
  if (n == 0) return {};
  const C first = static_cast<C>(x[0]);
  if constexpr (is_half(dtype_of<T>)) {
    // The first element is nearly always close enough to the mean for half precision: one pass is enough.
    constexpr double kNear = 64;  // squared standard deviations
    const cpu::DistanceSums sums = cpu::sum_distances_and_squares(x, first, n);
    const Moments<double> found = moments_around(n, first, sums.distances, sums.squares);
    const double off = found.mean - static_cast<double>(first);
    if (std::isfinite(found.squares) && off * off * found.count <= kNear * found.squares) return found;
  }
  const C center =
      static_cast<C>(static_cast<double>(first) + cpu::sum_distances(x, first, n) / static_cast<double>(n));
  const cpu::DistanceSums sums = cpu::sum_distances_and_squares(x, center, n);
  const Moments<double> found = moments_around(n, center, sums.distances, sums.squares);
  return std::isfinite(found.squares) ? found : moments_in_double(x, n, 1);
}

// The same for columns, a group of rows at a time.
template <class T>
void moments_of_columns(const cpu::ColumnRows<T>& of, Moments<double>* total) {
  using C = compute_type<T>;
  const int64_t width = of.width;
  std::fill(total, total + width, Moments<double>());
  C center[cpu::kStrip<T>], distances[cpu::kStrip<T>], squares[cpu::kStrip<T>];
  for (int64_t row = 0; row < of.rows; row += cpu::kGroup) {
    const int64_t rows = std::min(of.rows - row, cpu::kGroup);
    const T* group = of.first + row * of.step;
    for (int64_t j = 0; j < width; ++j) {
      center[j] = static_cast<C>(group[j]);
      distances[j] = 0;
      squares[j] = 0;
    }
    for (int64_t k = 0; k < rows; ++k)
      cpu::add_distances(group + k * of.step, center, distances, width);
    for (int64_t j = 0; j < width; ++j) {
      center[j] += distances[j] / static_cast<C>(rows);
      distances[j] = 0;
    }
    for (int64_t k = 0; k < rows; ++k)
      cpu::add_distances(group + k * of.step, center, distances, squares, width);
    for (int64_t j = 0; j < width; ++j) {
      const Moments<double> found = moments_around(rows, center[j], distances[j], squares[j]);
      total[j] =
          join_moments(total[j], std::isfinite(found.squares) ? found : moments_in_double(group + j, rows, of.step));
    }
  }
}

Variance variance_cpu(const Tensor& x, const Shape& dims, double correction, bool keepdim, bool root) {
  const VariancePlan plan = prepare_variance(x, dims, keepdim);
  visit_floating(x.dtype(), "var", [&]<class T>() {
    const T* values = static_cast<const T*>(plan.slices.x.raw_data());
    const VarianceOf<T> reducer{static_cast<T*>(plan.slices.out.raw_data()), static_cast<T*>(plan.mean.raw_data()),
                                correction, root};
    const auto store = [&](int64_t i, const Moments<double>& seen) { reducer.store(i, seen); };
    if (plan.slices.inner == 1) {
      cpu::for_rows<Moments<double>>(plan.slices, values, &moments_of_row<T>, &join_moments<double>, store);
      return;
    }
    cpu::for_columns<Moments<double>>(plan.slices, values, &moments_of_columns<T>, &join_moments<double>, store);
  });
  return {plan.slices.out, plan.mean};
}

Tensor variance_backward_cpu(const Tensor& factor, const Tensor& x, const Tensor& mean, const Shape& dims) {
  const VarianceBackwardPlan plan = prepare_variance_backward(factor, x, mean, dims);
  const ReductionPlan& slices = plan.slices;
  visit_floating(x.dtype(), "var backward", [&]<class T>() {
    using C = compute_type<T>;
    const T* values = static_cast<const T*>(slices.x.raw_data());
    const T* factors = static_cast<const T*>(plan.factor.raw_data());
    const T* means = static_cast<const T*>(plan.mean.raw_data());
    T* slopes = static_cast<T*>(plan.slope.raw_data());
    const auto slope = [](T value, C center, C scale) {
      return static_cast<T>((static_cast<C>(value) - center) * scale);
    };
    if (slices.inner == 1) {
      cpu::parallel_for(
          slices.outer,
          [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              const C center = static_cast<C>(means[i]);
              const C scale = static_cast<C>(factors[i]);
              for (int64_t j = i * slices.reduced; j < (i + 1) * slices.reduced; ++j)
                slopes[j] = slope(values[j], center, scale);
            }
          },
          slices.reduced);
      return;
    }
    cpu::parallel_for(
        slices.outer * slices.reduced,
        [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            const int64_t slice = row / slices.reduced * slices.inner;
            for (int64_t j = 0; j < slices.inner; ++j)
              slopes[row * slices.inner + j] = slope(values[row * slices.inner + j], static_cast<C>(means[slice + j]),
                                                     static_cast<C>(factors[slice + j]));
          }
        },
        slices.inner);
  });
  return plan.result;
}

}  // namespace

constinit Kernel<Variance(const Tensor&, const Shape&, double, bool, bool)> variance("var", &variance_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, const Shape&)> variance_backward(
    "var_backward", &variance_backward_cpu);

}  // namespace brigade::kernels
