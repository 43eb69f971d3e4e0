// The CUDA column of softmax.h: a warp per short row, a block per long one. A row is read twice, the second time from
// cache, and written once.
#include <brigade/kernels/softmax.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/cuda/detail/row_threads.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::kernels {

namespace {

template <bool short_rows, bool logarithm, class T>
__global__ void __launch_bounds__(cuda::kRowThreads) softmax_kernel(int64_t rows, int64_t n, const T* x, T* y) {
  using C = compute_type<T>;
  using Threads = cuda::RowThreads<short_rows>;
  const int64_t row = Threads::row();
  if (row >= rows) return;  // a whole warp of short rows
  const T* in = x + row * n;
  T* out = y + row * n;
  auto seen = cuda::nothing_seen<C>();
  for (int64_t i = threadIdx.x; i < n; i += Threads::step())
    cuda::see(seen, static_cast<C>(in[i]));
  seen = Threads::reduce(seen, cuda::MergeMaxAndSum{});
  if constexpr (logarithm) {
    const C shift = seen.max + std::log(seen.sum);
    for (int64_t i = threadIdx.x; i < n; i += Threads::step())
      out[i] = static_cast<T>(static_cast<C>(in[i]) - shift);
  } else {
    const C factor = C(1) / seen.sum;
    for (int64_t i = threadIdx.x; i < n; i += Threads::step())
      out[i] = static_cast<T>(std::exp(static_cast<C>(in[i]) - seen.max) * factor);
  }
}

template <bool short_rows, bool logarithm, class T>
__global__ void __launch_bounds__(cuda::kRowThreads)
    softmax_backward_kernel(int64_t rows, int64_t n, const T* grad, const T* y, T* result) {
  using C = compute_type<T>;
  using Threads = cuda::RowThreads<short_rows>;
  const int64_t row = Threads::row();
  if (row >= rows) return;
  const T* g = grad + row * n;
  const T* p = y + row * n;
  T* out = result + row * n;
  C sum = C(0);
  for (int64_t i = threadIdx.x; i < n; i += Threads::step())
    sum += logarithm ? static_cast<C>(g[i]) : static_cast<C>(g[i]) * static_cast<C>(p[i]);
  sum = Threads::reduce(sum, cuda::SumOf{});
  for (int64_t i = threadIdx.x; i < n; i += Threads::step()) {
    const C slope = static_cast<C>(g[i]);
    const C value = static_cast<C>(p[i]);
    out[i] = static_cast<T>(logarithm ? slope - std::exp(value) * sum : value * (slope - sum));
  }
}

// Calls run(rows, n) on tensors in which `dim` is the last; moves it there and back where it is not.
template <class Run>
Tensor along(const Tensor& x, int dim, Run run) {
  if (x.dim() == 0) return view::squeeze(along(view::unsqueeze(x, 0), 0, run), 0);
  if (dim != x.dim() - 1) return clone(view::transpose(along(view::transpose(x, dim, -1), x.dim() - 1, run), dim, -1));
  Tensor result = empty(x.sizes(), x.options());
  if (result.numel() > 0) run(contiguous(x), result, x.numel() / x.sizes().back(), x.sizes().back());
  return result;
}

template <bool logarithm>
Tensor forward(const char* what, const Tensor& x, int dim) {
  return along(x, dim, [&](const Tensor& source, const Tensor& result, int64_t rows, int64_t n) {
    visit_floating(x.dtype(), what, [&]<class T>() {
      cuda::launch_rows(what, x.device(), rows, n, &softmax_kernel<true, logarithm, T>,
                        &softmax_kernel<false, logarithm, T>, static_cast<const T*>(source.raw_data()),
                        static_cast<T*>(result.raw_data()));
    });
  });
}

template <bool logarithm>
Tensor backward(const char* what, const Tensor& grad, const Tensor& y, int dim) {
  const bool moves = y.dim() > 0 && dim != y.dim() - 1;
  const Tensor values = contiguous(moves ? view::transpose(y, dim, -1) : y);
  return along(grad, dim, [&](const Tensor& source, const Tensor& result, int64_t rows, int64_t n) {
    visit_floating(grad.dtype(), what, [&]<class T>() {
      cuda::launch_rows(what, grad.device(), rows, n, &softmax_backward_kernel<true, logarithm, T>,
                        &softmax_backward_kernel<false, logarithm, T>, static_cast<const T*>(source.raw_data()),
                        static_cast<const T*>(values.raw_data()), static_cast<T*>(result.raw_data()));
    });
  });
}

Tensor softmax_cuda(const Tensor& x, int dim) { return forward<false>("softmax", x, dim); }
Tensor softmax_backward_cuda(const Tensor& grad, const Tensor& y, int dim) {
  return backward<false>("softmax_backward", grad, y, dim);
}
Tensor log_softmax_cuda(const Tensor& x, int dim) { return forward<true>("log_softmax", x, dim); }
Tensor log_softmax_backward_cuda(const Tensor& grad, const Tensor& y, int dim) {
  return backward<true>("log_softmax_backward", grad, y, dim);
}

const AddKernel add_softmax(softmax, kCUDA, &softmax_cuda);
const AddKernel add_softmax_backward(softmax_backward, kCUDA, &softmax_backward_cuda);
const AddKernel add_log_softmax(log_softmax, kCUDA, &log_softmax_cuda);
const AddKernel add_log_softmax_backward(log_softmax_backward, kCUDA, &log_softmax_backward_cuda);

}  // namespace

}  // namespace brigade::kernels
