#include <brigade/kernels/softmax.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/exponentials.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <type_traits>

namespace brigade::kernels {

namespace {

// [outer, n, inner], softmax along the middle.
struct Lines {
  int64_t outer = 1, n = 1, inner = 1;

  Lines(const Shape& sizes, int dim) {
    for (int d = 0; d < sizes.size(); ++d)
      (d < dim ? outer : d == dim ? n : inner) *= sizes[d];
  }
};

// Columns that are worked on at once: few enough that their lines stay in the cache until the last pass.
constexpr int64_t kColumns = 64;

// Calls row(offset) for each line whose elements are neighbours, otherwise strip(offset, width) for lines beside each
// other.
template <class Row, class Strip>
void for_lines(const Lines& lines, Row row, Strip strip) {
  if (lines.inner == 1) {
    cpu::parallel_for(
        lines.outer,
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            row(i * lines.n);
        },
        8 * lines.n);
    return;
  }
  const int64_t strips = (lines.inner + kColumns - 1) / kColumns;
  cpu::parallel_for(
      lines.outer * strips,
      [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t column = task % strips * kColumns;
          strip(task / strips * lines.n * lines.inner + column, std::min(kColumns, lines.inner - column));
        }
      },
      8 * lines.n * std::min(lines.inner, kColumns));
}

template <bool logarithm, class T>
void forward_row(const T* x, T* y, int64_t n) {
  using C = compute_type<T>;
  const C shift = cpu::reduce_row(x, n, cpu::LargestNumber<C>{});
  if constexpr (logarithm) {
    const C log_sum = std::log(cpu::reduce_row(x, n, cpu::SumOfExp<C>{shift}));
    for (int64_t i = 0; i < n; ++i)
      y[i] = static_cast<T>(static_cast<C>(x[i]) - shift - log_sum);
  } else if constexpr (std::is_same_v<T, C>) {
    for (int64_t i = 0; i < n; ++i)
      y[i] = cpu::exp_nonpositive(x[i] - shift);
    const C factor = C(1) / cpu::reduce_row(y, n, cpu::SumOf<C>{});
    for (int64_t i = 0; i < n; ++i)
      y[i] *= factor;
  } else {
    // Twice the exponentials, but one rounding.
    const C factor = C(1) / cpu::reduce_row(x, n, cpu::SumOfExp<C>{shift});
    for (int64_t i = 0; i < n; ++i)
      y[i] = static_cast<T>(cpu::exp_nonpositive(static_cast<C>(x[i]) - shift) * factor);
  }
}

template <bool logarithm, class T>
void forward_strip(const T* x, T* y, int64_t n, int64_t stride, int64_t width) {
  using C = compute_type<T>;
  C shift[kColumns], sum[kColumns], number[kColumns];
  const auto for_elements = [&](auto body) {
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t j = 0; j < width; ++j)
        body(j, x[k * stride + j], y[k * stride + j]);
    }
  };
  std::fill(shift, shift + width, -std::numeric_limits<C>::infinity());
  std::fill(sum, sum + width, C(0));
  for_elements([&](int64_t j, T in, T&) {
    const C value = static_cast<C>(in);
    shift[j] = value > shift[j] ? value : shift[j];
  });
  for_elements([&](int64_t j, T in, T&) { sum[j] += cpu::exp_nonpositive(static_cast<C>(in) - shift[j]); });
  for (int64_t j = 0; j < width; ++j)
    number[j] = logarithm ? std::log(sum[j]) : C(1) / sum[j];
  for_elements([&](int64_t j, T in, T& out) {
    const C value = static_cast<C>(in) - shift[j];
    out = static_cast<T>(logarithm ? value - number[j] : cpu::exp_nonpositive(value) * number[j]);
  });
}

// Softmax: p (g - sum of g p); log_softmax: g - p times the sum of g.
template <bool logarithm, class C>
C slope(C grad, C result, C sum) {
  return logarithm ? grad - cpu::exp_nonpositive(result) * sum : result * (grad - sum);
}

template <bool logarithm, class T>
void backward_row(const T* grad, const T* y, T* out, int64_t n) {
  using C = compute_type<T>;
  C sum = 0;
  if constexpr (logarithm) {
    sum = cpu::reduce_row(grad, n, cpu::SumOf<C>{});
  } else {
    constexpr int kLanes = cpu::kLanes;
    C lanes[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane)
        lanes[lane] += static_cast<C>(grad[i + lane]) * static_cast<C>(y[i + lane]);
    }
    for (; i < n; ++i)
      lanes[i % kLanes] += static_cast<C>(grad[i]) * static_cast<C>(y[i]);
    sum = cpu::reduce_row(lanes, kLanes, cpu::SumOf<C>{});
  }
  for (int64_t i = 0; i < n; ++i)
    out[i] = static_cast<T>(slope<logarithm>(static_cast<C>(grad[i]), static_cast<C>(y[i]), sum));
}

template <bool logarithm, class T>
void backward_strip(const T* grad, const T* y, T* out, int64_t n, int64_t stride, int64_t width) {
  using C = compute_type<T>;
  C sum[kColumns];
  std::fill(sum, sum + width, C(0));
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t j = 0; j < width; ++j) {
      const C g = static_cast<C>(grad[k * stride + j]);
      sum[j] += logarithm ? g : g * static_cast<C>(y[k * stride + j]);
    }
  }
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t j = 0; j < width; ++j) {
      const int64_t i = k * stride + j;
      out[i] = static_cast<T>(slope<logarithm>(static_cast<C>(grad[i]), static_cast<C>(y[i]), sum[j]));
    }
  }
}

template <bool logarithm>
Tensor forward(const Tensor& x, int dim, const char* what) {
  const Tensor source = contiguous(x);
  const Tensor result = empty(x.sizes(), x.options());
  const Lines lines(x.sizes(), dim);
  visit_floating(x.dtype(), what, [&]<class T>() {
    const T* in = static_cast<const T*>(source.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    if (result.numel() == 0) return;
    for_lines(
        lines, [&](int64_t at) { forward_row<logarithm>(in + at, out + at, lines.n); },
        [&](int64_t at, int64_t width) { forward_strip<logarithm>(in + at, out + at, lines.n, lines.inner, width); });
  });
  return result;
}

template <bool logarithm>
Tensor backward(const Tensor& grad, const Tensor& y, int dim, const char* what) {
  const Tensor slopes = contiguous(grad);
  const Tensor results = contiguous(y);
  const Tensor result = empty(grad.sizes(), grad.options());
  const Lines lines(grad.sizes(), dim);
  visit_floating(grad.dtype(), what, [&]<class T>() {
    const T* g = static_cast<const T*>(slopes.raw_data());
    const T* p = static_cast<const T*>(results.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    if (result.numel() == 0) return;
    for_lines(
        lines, [&](int64_t at) { backward_row<logarithm>(g + at, p + at, out + at, lines.n); },
        [&](int64_t at, int64_t width) {
          backward_strip<logarithm>(g + at, p + at, out + at, lines.n, lines.inner, width);
        });
  });
  return result;
}

Tensor softmax_cpu(const Tensor& x, int dim) { return forward<false>(x, dim, "softmax"); }
Tensor softmax_backward_cpu(const Tensor& grad, const Tensor& y, int dim) {
  return backward<false>(grad, y, dim, "softmax backward");
}
Tensor log_softmax_cpu(const Tensor& x, int dim) { return forward<true>(x, dim, "log_softmax"); }
Tensor log_softmax_backward_cpu(const Tensor& grad, const Tensor& y, int dim) {
  return backward<true>(grad, y, dim, "log_softmax backward");
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, int)> softmax("softmax", &softmax_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, int)> softmax_backward("softmax_backward", &softmax_backward_cpu);
constinit Kernel<Tensor(const Tensor&, int)> log_softmax("log_softmax", &log_softmax_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, int)> log_softmax_backward("log_softmax_backward",
                                                                                 &log_softmax_backward_cpu);

}  // namespace brigade::kernels
