#include <brigade/kernels/softmax.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/cpu/detail/math.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/elementwise.h>

#include <vector>

namespace brigade::kernels {

namespace {

// Runs row(in..., out, n) over contiguous rows along `dim`: the dimension is moved to the end and back where it is not
// the last.
template <class Row>
Tensor along(const Tensor& x, const Tensor* other, int dim, const char* what, Row row) {
  if (x.dim() == 0) {
    const Tensor x1 = view::unsqueeze(x, 0);
    const Tensor other1 = other ? view::unsqueeze(*other, 0) : Tensor();
    return view::squeeze(along(x1, other ? &other1 : nullptr, 0, what, row), 0);
  }
  if (dim != x.dim() - 1) {
    const Tensor moved = view::transpose(x, dim, -1);
    const Tensor other_moved = other ? view::transpose(*other, dim, -1) : Tensor();
    return clone(view::transpose(along(moved, other ? &other_moved : nullptr, x.dim() - 1, what, row), dim, -1));
  }
  const Tensor source = contiguous(x);
  const Tensor second = other ? contiguous(*other) : source;
  Tensor result = empty(x.sizes(), x.options());
  const int64_t n = x.sizes().back();
  if (result.numel() == 0) return result;
  visit_floating(x.dtype(), what, [&]<class T>() {
    const T* in = static_cast<const T*>(source.raw_data());
    const T* in2 = static_cast<const T*>(second.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    cpu::parallel_for(
        x.numel() / n,
        [&](int64_t begin, int64_t end) {
          std::vector<compute_type<T>> scratch(static_cast<size_t>(n));
          for (int64_t i = begin; i < end; ++i)
            row(in + i * n, in2 + i * n, out + i * n, n, scratch.data());
        },
        8 * n);
  });
  return result;
}

template <class T>
compute_type<T> row_max(const T* x, int64_t n) {
  compute_type<T> best = static_cast<compute_type<T>>(x[0]);
  for (int64_t i = 1; i < n; ++i) {
    const auto v = static_cast<compute_type<T>>(x[i]);
    best = v > best ? v : best;
  }
  return best;
}

Tensor softmax_cpu(const Tensor& x, int dim) {
  return along(x, nullptr, dim, "softmax", []<class T, class C>(const T* in, const T*, T* out, int64_t n, C* scratch) {
    const C shift = row_max(in, n);
    C sum = 0;
    for (int64_t i = 0; i < n; ++i)
      scratch[i] = cpu::exp(static_cast<C>(in[i]) - shift);
    for (int64_t i = 0; i < n; ++i)
      sum += scratch[i];
    const C factor = C(1) / sum;
    for (int64_t i = 0; i < n; ++i)
      out[i] = static_cast<T>(scratch[i] * factor);
  });
}

Tensor softmax_backward_cpu(const Tensor& grad, const Tensor& y, int dim) {
  return along(grad, &y, dim, "softmax backward", []<class T, class C>(const T* g, const T* p, T* out, int64_t n, C*) {
    C dot = 0;
    for (int64_t i = 0; i < n; ++i)
      dot += static_cast<C>(g[i]) * static_cast<C>(p[i]);
    for (int64_t i = 0; i < n; ++i)
      out[i] = static_cast<T>(static_cast<C>(p[i]) * (static_cast<C>(g[i]) - dot));
  });
}

Tensor log_softmax_cpu(const Tensor& x, int dim) {
  return along(x, nullptr, dim, "log_softmax",
               []<class T, class C>(const T* in, const T*, T* out, int64_t n, C* scratch) {
                 const C shift = row_max(in, n);
                 C sum = 0;
                 for (int64_t i = 0; i < n; ++i)
                   scratch[i] = cpu::exp(static_cast<C>(in[i]) - shift);
                 for (int64_t i = 0; i < n; ++i)
                   sum += scratch[i];
                 const C log_sum = shift + std::log(sum);
                 for (int64_t i = 0; i < n; ++i)
                   out[i] = static_cast<T>(static_cast<C>(in[i]) - log_sum);
               });
}

Tensor log_softmax_backward_cpu(const Tensor& grad, const Tensor& y, int dim) {
  return along(grad, &y, dim, "log_softmax backward",
               []<class T, class C>(const T* g, const T* log_p, T* out, int64_t n, C* scratch) {
                 C sum = 0;
                 for (int64_t i = 0; i < n; ++i)
                   sum += static_cast<C>(g[i]);
                 for (int64_t i = 0; i < n; ++i)
                   scratch[i] = cpu::exp(static_cast<C>(log_p[i]));
                 for (int64_t i = 0; i < n; ++i)
                   out[i] = static_cast<T>(static_cast<C>(g[i]) - scratch[i] * sum);
               });
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, int)> softmax("softmax", &softmax_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, int)> softmax_backward("softmax_backward", &softmax_backward_cpu);
constinit Kernel<Tensor(const Tensor&, int)> log_softmax("log_softmax", &log_softmax_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, int)> log_softmax_backward("log_softmax_backward",
                                                                                 &log_softmax_backward_cpu);

}  // namespace brigade::kernels
