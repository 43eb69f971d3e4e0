// Softmax and log_softmax on the CPU: rows whose elements are neighbours, or strips of columns.
#include <brigade/kernels/softmax.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/conversion.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/cpu/detail/stretches.h>
#include <brigade/kernels/cpu/vector/exponentials.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

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

// float64 or float32; throws DTypeError for what is neither.
template <class Body>
void visit_full(DType dtype, const char* what, Body&& body) {
  if (dtype == kFloat64) return body.template operator()<double>();
  if (dtype == kFloat32) return body.template operator()<float>();
  visit_floating(dtype, what, []<class T>() {});
}

// Columns that are worked on at once: few enough that their elements stay in the cache until the
// last pass.
constexpr int64_t kColumns = cpu::kStripColumns;

// Calls rows(offset, count) for slices whose elements are neighbours, otherwise strip(offset,
// width) for slices beside each other.
template <class Rows, class Strip>
void for_slices(const Slices& slices, Rows rows, Strip strip) {
  if (slices.inner == 1) {
    cpu::parallel_for(
        slices.outer, [&](int64_t begin, int64_t end) { rows(begin * slices.n, end - begin); }, 8 * slices.n);
    return;
  }
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

// float64, one slice whose elements are `stride` apart, in plain loops.
void forward_slice(bool logarithm, const double* x, double* y, int64_t n, int64_t stride) {
  double shift = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n * stride; i += stride)
    shift = x[i] > shift ? x[i] : shift;  // a NaN is passed over: it shows in the sum
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

// Other slices of halves are cast as a whole.
bool goes_by_rows(DType dtype, const Slices& slices) {
  return is_half(dtype) && slices.inner == 1 && slices.n <= cpu::kLongestHalfRow;
}

Tensor forward_of_half_rows(bool logarithm, const Tensor& x, const Slices& slices) {
  const Tensor source = contiguous(x);
  const Tensor result = empty(x.sizes(), x.options());
  cpu::parallel_for(
      result.numel() == 0 ? 0 : slices.outer,
      [&](int64_t begin, int64_t end) {
        const void* const in[] = {cpu::element(source, begin * slices.n)};
        cpu::softmax_half_rows(
            logarithm, {x.dtype(), in, cpu::element(result, begin * slices.n), (end - begin) * slices.n}, end - begin);
      },
      8 * slices.n);
  return result;
}

// Of rows of float32 or of halves.
Tensor backward_of_rows(bool logarithm, const Tensor& grad, const Tensor& y, const Slices& slices) {
  const Tensor slopes = contiguous(grad);
  const Tensor results = contiguous(y);
  const Tensor result = empty(grad.sizes(), grad.options());
  cpu::parallel_for(
      result.numel() == 0 ? 0 : slices.outer,
      [&](int64_t begin, int64_t end) {
        const void* const in[] = {cpu::element(slopes, begin * slices.n), cpu::element(results, begin * slices.n)};
        cpu::softmax_gradient_rows(logarithm,
                                   {grad.dtype(), in, cpu::element(result, begin * slices.n), (end - begin) * slices.n},
                                   end - begin);
      },
      8 * slices.n);
  return result;
}

Tensor forward(bool logarithm, const Tensor& x, int dim, const char* what) {
  const Slices slices(x.sizes(), dim);
  if (goes_by_rows(x.dtype(), slices)) return forward_of_half_rows(logarithm, x, slices);
  if (is_half(x.dtype())) return cast(forward(logarithm, cast(x, kFloat32), dim, what), x.dtype());
  const Tensor source = contiguous(x);
  const Tensor result = empty(x.sizes(), x.options());
  visit_full(x.dtype(), what, [&]<class T>() {
    const T* const in = source.data_ptr<T>();
    T* const out = result.data_ptr<T>();
    if (result.numel() == 0) return;
    for_slices(
        slices,
        [&](int64_t at, int64_t rows) {
          if constexpr (std::is_same_v<T, float>) {
            cpu::softmax_rows(logarithm, in + at, out + at, rows, slices.n);
          } else {
            for (int64_t row = 0; row < rows; ++row)
              forward_slice(logarithm, in + at + row * slices.n, out + at + row * slices.n, slices.n, 1);
          }
        },
        [&](int64_t at, int64_t width) {
          if constexpr (std::is_same_v<T, float>) {
            cpu::softmax_columns(logarithm, in + at, out + at, slices.n, slices.inner, width);
          } else {
            for (int64_t j = at; j < at + width; ++j)
              forward_slice(logarithm, in + j, out + j, slices.n, slices.inner);
          }
        });
  });
  return result;
}

Tensor backward(bool logarithm, const Tensor& grad, const Tensor& y, int dim, const char* what) {
  const Slices slices(grad.sizes(), dim);
  if (slices.inner == 1 && cpu::is_computed_in_float(grad.dtype())) return backward_of_rows(logarithm, grad, y, slices);
  if (is_half(grad.dtype()))
    return cast(backward(logarithm, cast(grad, kFloat32), cast(y, kFloat32), dim, what), grad.dtype());
  const Tensor slopes = contiguous(grad);
  const Tensor results = contiguous(y);
  const Tensor result = empty(grad.sizes(), grad.options());
  visit_full(grad.dtype(), what, [&]<class T>() {
    const T* const g = slopes.data_ptr<T>();
    const T* const p = results.data_ptr<T>();
    T* const out = result.data_ptr<T>();
    if (result.numel() == 0) return;
    for_slices(
        slices,
        [&](int64_t at, int64_t rows) {
          if constexpr (std::is_same_v<T, double>) {  // rows of float32 have gone by backward_of_rows
            for (int64_t first = at; first < at + rows * slices.n; first += slices.n)
              backward_slice(logarithm, g + first, p + first, out + first, slices.n, 1);
          }
        },
        [&](int64_t at, int64_t width) {
          if constexpr (std::is_same_v<T, float>) {
            cpu::softmax_gradient_columns(logarithm, g + at, p + at, out + at, slices.n, slices.inner, width);
          } else {
            for (int64_t j = at; j < at + width; ++j)
              backward_slice(logarithm, g + j, p + j, out + j, slices.n, slices.inner);
          }
        });
  });
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
