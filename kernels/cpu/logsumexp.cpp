// Logsumexp on the CPU: the largest element of a row, then the sum of exp(x - largest).
#include <brigade/kernels/reduce.h>

#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/reducers.h>
#include <brigade/kernels/cpu/detail/reduce_slices.h>
#include <brigade/kernels/cpu/vector/exponentials.h>
#include <brigade/kernels/elementwise.h>

#include <cmath>
#include <vector>

namespace brigade::kernels {
namespace {

// The state of a row: its largest element so far, and the sum of exp(x - largest).
template <class C>
struct Exponentials {
  C largest, sum;
};
// The sum is unused when the largest element is infinite.
template <class C>
Exponentials<C> join(const Exponentials<C>& a, const Exponentials<C>& b) {
  const C largest = ExtremeOf<true, C>{nullptr}.join(a.largest, b.largest);
  if (std::isinf(largest)) return {largest, C(0)};
  return {largest, a.sum * std::exp(a.largest - largest) + b.sum * std::exp(b.largest - largest)};
}
// A NaN counts as the largest element and becomes the result.
Exponentials<float> exponentials_of_row(const float* x, int64_t n) {
  const float largest = cpu::largest_float(x, n);
  if (std::isinf(largest)) return {cpu::reduce_row(x, n, ExtremeOf<true, float>{nullptr}), 0.0F};
  const float sum = cpu::sum_exp_floats(x, largest, n);
  return {std::isnan(sum) ? sum : largest, sum};  // so that join() keeps the NaN over an infinity
}
Exponentials<double> exponentials_of_row(const double* x, int64_t n) {
  const double largest = cpu::reduce_row(x, n, ExtremeOf<true, double>{nullptr});
  double sum = 0;
  for (int64_t i = 0; i < n && !std::isinf(largest); ++i)
    sum += std::exp(x[i] - largest);
  return {largest, sum};
}

template <class C>
void logsumexp_into(const ReductionPlan& r) {
  const C* x = static_cast<const C*>(r.x.raw_data());
  C* out = static_cast<C*>(r.out.raw_data());
  const auto store = [&](int64_t i, const Exponentials<C>& seen) {
    out[i] = std::isinf(seen.largest) ? seen.largest : seen.largest + std::log(seen.sum);
  };
  if (r.inner == 1) {
    cpu::for_rows<Exponentials<C>>(
        r, x, [](const C* row, int64_t n) { return exponentials_of_row(row, n); }, &join<C>, store);
    return;
  }
  // Columns are transposed to rows, a few at a time.
  cpu::for_columns<Exponentials<C>>(
      r, x,
      [](const cpu::ColumnRows<C>& of, Exponentials<C>* totals) {
        std::vector<C> column(static_cast<size_t>(of.rows));
        for (int64_t j = 0; j < of.width; ++j) {
          for (int64_t k = 0; k < of.rows; ++k)
            column[static_cast<size_t>(k)] = of.first[k * of.step + j];
          totals[j] = exponentials_of_row(column.data(), of.rows);
        }
      },
      &join<C>, store);
}

Tensor logsumexp_cpu(const Tensor& x, const Shape& dims, bool keepdim) {
  check_floating(x.dtype(), "logsumexp");
  if (is_half(x.dtype())) return cast(logsumexp_cpu(cast(x, kFloat32), dims, keepdim), x.dtype());
  const ReductionPlan r = prepare_reduction(x, dims, keepdim, x.dtype());
  if (x.dtype() == kFloat64) {
    logsumexp_into<double>(r);
  } else {
    logsumexp_into<float>(r);
  }
  return r.out;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Shape&, bool)> logsumexp("logsumexp", &logsumexp_cpu);

}  // namespace brigade::kernels
