// Element after element: a slice at a time, or a strip of slices that lie beside each other, whose
// loop takes vectors. float32 runs in double, as many small steps would add up their roundings.
#include <brigade/kernels/scan.h>

#include <brigade/kernels/common/scan.h>
#include <brigade/kernels/cpu/detail/parallel.h>

#include <type_traits>

namespace brigade::kernels {

namespace {

template <class T>
using scan_type = std::conditional_t<std::is_same_v<T, float>, double, compute_type<T>>;

// step(state, i) is the state after element i.
template <class T, class C, class Step>
void run_slices(const ScanPlan& plan, bool reverse, C start, Step step) {
  constexpr int64_t kStrip = 64;
  T* const out = static_cast<T*>(plan.result.raw_data());
  const int64_t length = plan.length;
  const int64_t inner = plan.inner;
  const int64_t strips = (inner + kStrip - 1) / kStrip;
  if (length == 0) return;
  cpu::parallel_for(
      plan.outer * strips,
      [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t first = task / strips * length * inner + task % strips * kStrip;
          const int64_t width = std::min(kStrip, inner - task % strips * kStrip);
          if (width == 1) {
            C state = start;
            for (int64_t j = 0; j < length; ++j) {
              const int64_t i = first + (reverse ? length - 1 - j : j) * inner;
              state = step(state, i);
              out[i] = static_cast<T>(state);
            }
            continue;
          }
          C states[kStrip];
          std::fill(states, states + width, start);
          for (int64_t j = 0; j < length; ++j) {
            const int64_t row = first + (reverse ? length - 1 - j : j) * inner;
            for (int64_t k = 0; k < width; ++k) {
              states[k] = step(states[k], row + k);
              out[row + k] = static_cast<T>(states[k]);
            }
          }
        }
      },
      4 * length * std::min(kStrip, inner));
}

template <class T, class Scan>
void scan_slices(const ScanPlan& plan, bool reverse) {
  using C = typename Scan::State;
  const T* const x = static_cast<const T*>(plan.x.raw_data());
  run_slices<T, C>(plan, reverse, Scan::nothing(),
                   [x](C state, int64_t i) { return Scan::join(state, static_cast<C>(x[i])); });
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
    const T* const added = static_cast<const T*>(plan.x.raw_data());
    const T* const factor = static_cast<const T*>(plan.factor.raw_data());
    run_slices<T, C>(plan, reverse, C(0),
                     [=](C state, int64_t i) { return static_cast<C>(added[i]) + static_cast<C>(factor[i]) * state; });
  });
  return plan.result;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, int, ScanOp, bool)> scan("scan", &scan_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, int, bool)> linear_recurrence("linear_recurrence",
                                                                                    &linear_recurrence_cpu);

}  // namespace brigade::kernels
