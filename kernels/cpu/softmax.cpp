// Softmax and log_softmax on the CPU: contiguous rows, or strips of columns.
#include <brigade/kernels/activation.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/conversion.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/cpu/vector/exponentials.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace brigade::kernels {
namespace {

// [outer, n, inner], softmax along the middle.
struct Slices {
  int64_t outer = 1, n = 1, inner = 1;

  Slices(const Shape& sizes, int dim) {
    for (int d = 0; d < sizes.size(); ++d)
      (d < dim ? outer : d == dim ? n : inner) *= sizes[d];
  }
};

// Calls rows(offset, count) for slices that are contiguous rows.
template <class Rows>
void for_rows(const Slices& slices, Rows rows) {
  cpu::parallel_for(
      slices.outer, [&](int64_t begin, int64_t end) { rows(begin * slices.n, end - begin); }, 8 * slices.n);
}

// Calls strip(offset, width) for adjacent slices, few enough to stay in the cache until the last pass.
template <class Strip>
void for_strips(const Slices& slices, Strip strip) {
  constexpr int64_t kColumns = cpu::kStripColumns;
  const int64_t strips = (slices.inner + kColumns - 1) / kColumns;
  cpu::parallel_for(
      slices.outer * strips,
      [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t column = task % strips * kColumns;
          strip(task / strips * slices.n * slices.inner + column, std::min(kColumns, slices.inner - column));
        }
      },
      8 * slices.n * std::min(slices.inner, kColumns));
}

// Calls slice(offset) for each slice; its elements are slices.inner apart.
template <class Slice>
void for_each(const Slices& slices, Slice slice) {
  for_strips(slices, [&](int64_t at, int64_t width) {
    for (int64_t j = at; j < at + width; ++j)
      slice(j);
  });
}

// float64: one slice whose elements are `stride` apart, in scalar loops.
void forward_slice(bool logarithm, const double* x, double* y, int64_t n, int64_t stride) {
  double shift = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n * stride; i += stride)
    shift = x[i] > shift ? x[i] : shift;  // skips NaNs, which reach the sum
  double sum = 0;
  for (int64_t i = 0; i < n * stride; i += stride)
    sum += std::exp(x[i] - shift);
  const double log_sum = std::log(sum);
  for (int64_t i = 0; i < n * stride; i += stride)
    y[i] = logarithm ? x[i] - shift - log_sum : std::exp(x[i] - shift) / sum;
}

// Softmax: y (g - sum of g y); log_softmax: g - exp(y) times the sum of g.
void backward_slice(bool logarithm, const double* grad, const double* y, double* out, int64_t n, int64_t stride) {
  double sum = 0;
  for (int64_t i = 0; i < n * stride; i += stride)
    sum += logarithm ? grad[i] : grad[i] * y[i];
  for (int64_t i = 0; i < n * stride; i += stride)
    out[i] = logarithm ? grad[i] - std::exp(y[i]) * sum : y[i] * (grad[i] - sum);
}

void forward_of_rows(bool logarithm, const Slices& slices, const Tensor& x, const Tensor& y) {
  for_rows(slices, [&](int64_t at, int64_t rows) {
    if (x.dtype() == kFloat32) {
      cpu::softmax_rows(logarithm, x.data_ptr<float>() + at, y.data_ptr<float>() + at, rows, slices.n);
      return;
    }
    const void* const in[] = {cpu::element(x, at)};
    std::vector<float> room(static_cast<size_t>(slices.n + cpu::kRoomBeyond));
    cpu::softmax_half_rows(logarithm, {x.dtype(), in, cpu::element(y, at), rows * slices.n}, rows, room.data());
  });
}

Tensor forward(bool logarithm, const Tensor& x, int dim, const char* what) {
  visit_floating(x.dtype(), what, []<class T>() {});
  const Slices slices(x.sizes(), dim);
  const Tensor source = contiguous(x);
  const Tensor result = empty(x.sizes(), x.options());
  if (result.numel() == 0) return result;
  if (x.dtype() == kFloat64) {
    const auto* const in = source.data_ptr<double>();
    auto* const out = result.data_ptr<double>();
    for_each(slices, [&](int64_t at) { forward_slice(logarithm, in + at, out + at, slices.n, slices.inner); });
  } else if (slices.inner == 1) {
    forward_of_rows(logarithm, slices, source, result);
  } else {
    for_strips(slices, [&](int64_t at, int64_t width) {
      const void* const in[] = {cpu::element(source, at)};
      cpu::softmax_columns(logarithm, {x.dtype(), in, cpu::element(result, at), slices.n, slices.inner, width});
    });
  }
  return result;
}

Tensor backward(bool logarithm, const Tensor& grad, const Tensor& y, int dim, const char* what) {
  visit_floating(grad.dtype(), what, []<class T>() {});
  const Slices slices(grad.sizes(), dim);
  const Tensor slopes = contiguous(grad);
  const Tensor results = contiguous(y);
  const Tensor result = empty(grad.sizes(), grad.options());
  if (result.numel() == 0) return result;
  const auto inputs = [&](int64_t at) {
    return std::array<const void*, 2>{cpu::element(slopes, at), cpu::element(results, at)};
  };
  if (grad.dtype() == kFloat64) {
    const auto* const g = slopes.data_ptr<double>();
    const auto* const p = results.data_ptr<double>();
    auto* const out = result.data_ptr<double>();
    for_each(slices, [&](int64_t at) { backward_slice(logarithm, g + at, p + at, out + at, slices.n, slices.inner); });
  } else if (slices.inner == 1) {
    for_rows(slices, [&](int64_t at, int64_t rows) {
      const auto in = inputs(at);
      cpu::softmax_gradient_rows(logarithm, {grad.dtype(), in.data(), cpu::element(result, at), rows * slices.n}, rows);
    });
  } else {
    for_strips(slices, [&](int64_t at, int64_t width) {
      const auto in = inputs(at);
      cpu::softmax_gradient_columns(logarithm,
                                    {grad.dtype(), in.data(), cpu::element(result, at), slices.n, slices.inner, width});
    });
  }
  return result;
}

Tensor softmax_cpu(const Tensor& x, int dim) { return forward(false, x, dim, "softmax"); }
Tensor softmax_backward_cpu(const Tensor& grad, const Tensor& y, int dim) {
  return backward(false, grad, y, dim, "softmax backward");
}
Tensor log_softmax_cpu(const Tensor& x, int dim) { return forward(true, x, dim, "log_softmax"); }
Tensor log_softmax_backward_cpu(const Tensor& grad, const Tensor& y, int dim) {
  return backward(true, grad, y, dim, "log_softmax backward");
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, int)> softmax("softmax", &softmax_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, int)> softmax_backward("softmax_backward", &softmax_backward_cpu);
constinit Kernel<Tensor(const Tensor&, int)> log_softmax("log_softmax", &log_softmax_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, int)> log_softmax_backward("log_softmax_backward",
                                                                                 &log_softmax_backward_cpu);

}  // namespace brigade::kernels
