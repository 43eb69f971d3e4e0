// Scans on the CPU, element by element: a few rows at a time, or a strip of columns, whose loop vectorizes. float32 is
// computed in double, since rounding errors of many small steps would add up.
#include <brigade/kernels/reduce.h>

#include <brigade/kernels/common/reduce.h>
#include <brigade/kernels/cpu/detail/conversion.h>
#include <brigade/kernels/cpu/detail/parallel.h>

#include <algorithm>
#include <array>
#include <type_traits>

namespace brigade::kernels {
namespace {

template <class T>
using scan_type = std::conditional_t<std::is_same_v<T, float>, double, compute_type<T>>;

constexpr int64_t kWidth = 64;   // columns of a strip
constexpr int kRows = 4;         // rows in flight, since each step waits for the one before
constexpr int64_t kBlock = 128;  // elements of a row

// Half types are converted a block at a time, in their own buffer.
template <class T>
constexpr bool kConverts = is_half(dtype_of<T>);
template <class T>
using Number = std::conditional_t<kConverts<T>, float, T>;
template <class T>
const Number<T>* numbers_at(const T* from, int64_t n, [[maybe_unused]] float* room) {
  if constexpr (kConverts<T>) {
    cpu::convert(dtype_of<T>, from, kFloat32, room, n);
    return room;
  } else {
    return from;
  }
}

// Slices of a plan; step(state, element of each input...) returns the state after these elements.
template <class T, class C, size_t inputs, class Step>
class Slices {
 public:
  Slices(const ScanPlan& plan, std::array<const T*, inputs> in, bool reverse, C start, Step step)
      : plan_(plan),
        in_(in),
        out_(static_cast<T*>(plan.result.raw_data())),
        reverse_(reverse),
        start_(start),
        step_(step) {}

  void run() const {
    if (plan_.length == 0) return;
    if (plan_.inner == 1) {
      const auto rows = [&](int64_t row, int64_t end) {
        for (; row + kRows <= end; row += kRows)
          run_rows<kRows>(row);
        for (; row < end; ++row)
          run_rows<1>(row);
      };
      return cpu::parallel_for(plan_.outer, rows, 4 * plan_.length);
    }
    const int64_t strips = (plan_.inner + kWidth - 1) / kWidth;
    const auto run = [&](int64_t task, int64_t end) {
      for (; task < end; ++task) {
        const int64_t column = task % strips * kWidth;
        run_strip(task / strips * plan_.length * plan_.inner + column, std::min(kWidth, plan_.inner - column));
      }
    };
    cpu::parallel_for(plan_.outer * strips, run, 4 * plan_.length * std::min(kWidth, plan_.inner));
  }

 private:
  C after(C state, const Number<T>* const (&from)[inputs], int64_t i) const {
    if constexpr (inputs == 1) {
      return step_(state, static_cast<C>(from[0][i]));
    } else {
      return step_(state, static_cast<C>(from[0][i]), static_cast<C>(from[1][i]));
    }
  }

  template <int rows>
  void run_rows(int64_t first) const {
    [[maybe_unused]] float room[rows][inputs][kConverts<T> ? kBlock : 1];
    C states[rows];
    std::fill(states, states + rows, start_);
    for (int64_t done = 0; done < plan_.length; done += kBlock) {
      const int64_t count = std::min(kBlock, plan_.length - done);
      const int64_t begin = first * plan_.length + (reverse_ ? plan_.length - done - count : done);
      const Number<T>* from[rows][inputs];
      Number<T>* to[rows];
      for (int r = 0; r < rows; ++r) {
        for (size_t k = 0; k < inputs; ++k)
          from[r][k] = numbers_at(in_[k] + begin + r * plan_.length, count, room[r][k]);
        if constexpr (kConverts<T>) {
          to[r] = room[r][0];
        } else {
          to[r] = out_ + begin + r * plan_.length;
        }
      }
      const int64_t way = reverse_ ? -1 : 1;
      for (int64_t j = 0, i = reverse_ ? count - 1 : 0; j < count; ++j, i += way) {
        for (int r = 0; r < rows; ++r) {
          states[r] = after(states[r], from[r], i);
          to[r][i] = static_cast<Number<T>>(states[r]);
        }
      }
      if constexpr (kConverts<T>) {
        for (int r = 0; r < rows; ++r)
          cpu::convert(kFloat32, to[r], dtype_of<T>, out_ + begin + r * plan_.length, count);
      }
    }
  }

  void run_strip(int64_t first, int64_t width) const {
    [[maybe_unused]] float room[inputs][kConverts<T> ? kWidth : 1];
    C states[kWidth];
    std::fill(states, states + width, start_);
    for (int64_t j = 0; j < plan_.length; ++j) {
      const int64_t row = first + (reverse_ ? plan_.length - 1 - j : j) * plan_.inner;
      const Number<T>* from[inputs];
      for (size_t k = 0; k < inputs; ++k)
        from[k] = numbers_at(in_[k] + row, width, room[k]);
      for (int64_t i = 0; i < width; ++i)
        states[i] = after(states[i], from, i);
      if constexpr (kConverts<T>) {
        cpu::convert(kFloat32, states, dtype_of<T>, out_ + row, width);
      } else {
        std::transform(states, states + width, out_ + row, [](C state) { return static_cast<T>(state); });
      }
    }
  }

  const ScanPlan& plan_;
  std::array<const T*, inputs> in_;
  T* out_;
  bool reverse_;
  C start_;
  Step step_;
};

template <class T, class Scan>
void scan_slices(const ScanPlan& plan, bool reverse) {
  using C = typename Scan::State;
  const std::array in{static_cast<const T*>(plan.x.raw_data())};
  const auto step = [](C state, C x) { return Scan::join(state, x); };
  Slices(plan, in, reverse, Scan::nothing(), step).run();
}

Tensor scan_cpu(const Tensor& x, int dim, ScanOp op, bool reverse) {
  const ScanPlan plan = prepare_scan(x, dim, op);
  const auto sums_or_products = [&]<class T>() {
    if (op == ScanOp::Sum) {
      scan_slices<T, SumScan<scan_type<T>>>(plan, reverse);
    } else {
      scan_slices<T, ProductScan<scan_type<T>>>(plan, reverse);
    }
  };
  if (plan.x.dtype() == kInt64) {
    sums_or_products.template operator()<int64_t>();
  } else if (op == ScanOp::LogSumExp) {
    visit_floating(x.dtype(), "logcumsumexp",
                   [&]<class T>() { scan_slices<T, LogSumExpScan<scan_type<T>>>(plan, reverse); });
  } else {
    visit_floating(x.dtype(), "scan", sums_or_products);
  }
  return plan.result;
}

Tensor linear_recurrence_cpu(const Tensor& b, const Tensor& a, int dim, bool reverse) {
  const ScanPlan plan = prepare_linear_recurrence(b, a, dim);
  visit_floating(b.dtype(), "linear_recurrence", [&]<class T>() {
    using C = scan_type<T>;
    const std::array in{static_cast<const T*>(plan.x.raw_data()), static_cast<const T*>(plan.factor.raw_data())};
    Slices(plan, in, reverse, C(0), [](C state, C added, C factor) { return added + factor * state; }).run();
  });
  return plan.result;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, int, ScanOp, bool)> scan("scan", &scan_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, int, bool)> linear_recurrence("linear_recurrence",
                                                                                    &linear_recurrence_cpu);

}  // namespace brigade::kernels
