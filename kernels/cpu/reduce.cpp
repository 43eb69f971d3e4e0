// Sums, means, maxima and minima on the CPU, along rows or down strips of columns.
#include <brigade/kernels/reduce.h>

#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/reduce.h>
#include <brigade/kernels/cpu/detail/reduce_slices.h>
#include <brigade/kernels/cpu/vector/sums.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <type_traits>

namespace brigade::kernels {
namespace {

// The sum of a row; add_row adds a row to the running sums of columns.
template <class T, class Acc>
Acc sum_of_row(const T* row, int64_t n) {
  if constexpr (std::is_same_v<Acc, float>) {
    return static_cast<Acc>(cpu::sum(row, n));
  } else {
    return cpu::reduce_row(row, n, cpu::SumOf<Acc>{});
  }
}
template <class T, class Acc>
void add_row(const T* row, Acc* sums, int64_t n) {
  if constexpr (std::is_same_v<Acc, float>) {
    cpu::add(row, sums, n);
  } else {
    for (int64_t j = 0; j < n; ++j)
      sums[j] += static_cast<Acc>(row[j]);
  }
}

template <class T>
void sum_into(const ReductionPlan& x, double scale) {
  using Out = sum_type<T>;
  using Acc = sum_accumulator<T>;
  const T* values = static_cast<const T*>(x.x.raw_data());
  Out* result = static_cast<Out*>(x.out.raw_data());
  const auto store = [&](int64_t i, Acc sum) {
    if (scale != 1.0) sum = static_cast<Acc>(static_cast<double>(sum) * scale);
    if (x.accumulate) sum += static_cast<Acc>(result[i]);
    result[i] = static_cast<Out>(sum);
  };
  if (x.inner == 1) {
    const cpu::SumOf<Acc> adding;
    cpu::for_rows<Acc>(
        x, values, [](const T* row, int64_t n) { return sum_of_row<T, Acc>(row, n); },
        [&](Acc a, Acc b) { return adding.join(a, b); }, store);
    return;
  }
  // Columns: rows of a group are summed in the accumulator, groups in double: fast, and without loss over long columns.
  using Total = std::conditional_t<std::is_same_v<Acc, float>, double, Acc>;
  cpu::for_columns<Total>(
      x, values,
      [](const cpu::ColumnRows<T>& of, Total* totals) {
        Acc group[cpu::kStrip<T>];
        std::fill(totals, totals + of.width, Total(0));
        for (int64_t row = 0; row < of.rows; row += cpu::kGroup) {
          std::fill(group, group + of.width, Acc(0));
          for (int64_t k = row; k < std::min(of.rows, row + cpu::kGroup); ++k)
            add_row(of.first + k * of.step, group, of.width);
          for (int64_t j = 0; j < of.width; ++j)
            totals[j] += static_cast<Total>(group[j]);
        }
      },
      [](Total a, Total b) { return a + b; }, [&](int64_t i, Total total) { store(i, static_cast<Acc>(total)); });
}

Tensor reduce(const Tensor& x, const ReduceOptions& options, bool mean) {
  const ReductionPlan reduction = prepare_sum(x, options);
  const double scale = mean ? 1.0 / static_cast<double>(reduction.reduced) : 1.0;
  visit_dtype(x.dtype(), [&]<class T>() { sum_into<T>(reduction, scale); });
  return reduction.out;
}

Tensor sum_cpu(const Tensor& x, const ReduceOptions& options) { return reduce(x, options, false); }

Tensor mean_cpu(const Tensor& x, const ReduceOptions& options) {
  check_floating(x.dtype(), "mean");
  return reduce(x, options, true);
}

// The position of the largest or smallest element of a row. NaNs win, and the first among equals.
template <bool kMax, class T>
int64_t place_of_extreme(const T* row, int64_t length) {
  if constexpr (std::is_same_v<compute_type<T>, float>) {
    if (length >= cpu::kWorthFolding) {
      const float best = cpu::fold_row(kMax ? cpu::Fold::Largest : cpu::Fold::Smallest, dtype_of<T>, row, length);
      return cpu::first_place(dtype_of<T>, row, best, length);
    }
  }
  using C = compute_type<T>;
  int64_t best = 0;
  C champion = static_cast<C>(row[0]);
  for (int64_t j = 1; j < length; ++j) {
    const C candidate = static_cast<C>(row[j]);
    if (champion == champion && (candidate != candidate || (kMax ? candidate > champion : candidate < champion))) {
      best = j;
      champion = candidate;
    }
  }
  return best;
}

// The same for adjacent columns, row by row.
template <bool kMax, class T>
void places_of_extremes(const T* first, int64_t length, int64_t inner, int64_t width, int64_t* places) {
  using C = compute_type<T>;
  C champions[cpu::kStrip<T>], room[cpu::kStrip<T>];
  for (int64_t j = 0; j < width; ++j) {
    champions[j] = static_cast<C>(first[j]);
    places[j] = 0;
  }
  for (int64_t k = 1; k < length; ++k) {
    const C* const row = cpu::in_compute_type(first + k * inner, room, width);
    for (int64_t j = 0; j < width; ++j) {
      const C candidate = row[j];
      const bool is_better = kMax ? candidate > champions[j] : candidate < champions[j];
      const bool wins = champions[j] == champions[j] && (candidate != candidate || is_better);
      champions[j] = wins ? candidate : champions[j];
      places[j] = wins ? k : places[j];
    }
  }
}

template <bool kMax>
Extremes extremes(const Tensor& x, int dim, bool keepdim) {
  const ExtremesPlan plan = prepare_extremes(x, dim, keepdim);
  const int64_t length = plan.length;
  const int64_t inner = plan.inner;
  visit_dtype(x.dtype(), [&]<class T>() {
    const T* const values = static_cast<const T*>(plan.x.raw_data());
    T* const best_values = static_cast<T*>(plan.result.values.raw_data());
    auto* const places = plan.result.indices.template data_ptr<int64_t>();
    const int64_t strips = (inner + cpu::kStrip<T> - 1) / cpu::kStrip<T>;
    const int64_t outer = inner == 0 ? 0 : plan.result.values.numel() / inner;
    cpu::parallel_for(
        outer * strips,
        [&](int64_t begin, int64_t end) {
          for (int64_t task = begin; task < end; ++task) {
            const int64_t column = task % strips * cpu::kStrip<T>;
            const int64_t width = std::min(cpu::kStrip<T>, inner - column);
            const int64_t at = task / strips * inner + column;
            const T* const first = values + task / strips * length * inner + column;
            if (inner == 1) {
              places[at] = place_of_extreme<kMax>(first, length);
            } else {
              places_of_extremes<kMax>(first, length, inner, width, places + at);
            }
            for (int64_t j = 0; j < width; ++j)
              best_values[at + j] = first[places[at + j] * inner + j];
          }
        },
        length * std::min(inner, cpu::kStrip<T>));
  });
  return plan.result;
}

Extremes max_cpu(const Tensor& x, int dim, bool keepdim) { return extremes<true>(x, dim, keepdim); }
Extremes min_cpu(const Tensor& x, int dim, bool keepdim) { return extremes<false>(x, dim, keepdim); }
Tensor argmax_cpu(const Tensor& x, int dim, bool keepdim) { return extremes<true>(x, dim, keepdim).indices; }

Tensor extremes_backward_cpu(const Tensor& grad, const Tensor& indices, const Shape& x_sizes, int dim) {
  const ExtremesBackwardPlan plan = prepare_extremes_backward(grad, indices, x_sizes, dim);
  kernels::fill(plan.result, 0.0);
  const auto* chosen = plan.indices.data_ptr<int64_t>();
  visit_floating(grad.dtype(), "max backward", [&]<class T>() {
    const T* from = static_cast<const T*>(plan.grad.raw_data());
    T* to = static_cast<T*>(plan.result.raw_data());
    for (int64_t i = 0; i < plan.grad.numel(); ++i)
      to[(i / plan.inner * plan.length + chosen[i]) * plan.inner + i % plan.inner] = from[i];
  });
  return plan.result;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const ReduceOptions&)> sum("sum", &sum_cpu);
constinit Kernel<Tensor(const Tensor&, const ReduceOptions&)> mean("mean", &mean_cpu);
constinit Kernel<Extremes(const Tensor&, int, bool)> max("max", &max_cpu);
constinit Kernel<Extremes(const Tensor&, int, bool)> min("min", &min_cpu);
constinit Kernel<Tensor(const Tensor&, int, bool)> argmax("argmax", &argmax_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Shape&, int)> extremes_backward("extremes_backward",
                                                                                            &extremes_backward_cpu);

}  // namespace brigade::kernels
