// CUDA kernels of softmax: a warp per short row, a block per long one (detail/rows.h). A row that fits in its
// threads' registers is read once, a longer one twice, the second time mostly from cache. Each row is written once.
#include <brigade/kernels/activation.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/cuda/detail/rows.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::kernels {
namespace {

template <class Variant, bool logarithm, class T>
__global__ void __launch_bounds__(cuda::kRowThreads, 2) softmax_kernel(int64_t rows, int64_t n, const T* x, T* y) {
  using C = compute_type<T>;
  constexpr int kLength = Variant::kLength;
  const int64_t row = Variant::row();
  if (row >= rows) return;  // a whole warp, for short rows
  const cuda::Row<Variant, T> source(x + row * n, n);
  const auto seen = cuda::max_and_sum(source, n);
  const C number = logarithm ? std::log(seen.sum) : C(1) / seen.sum;
  Variant::for_vectors(n, [&](int slot, int64_t at) {
    const auto vector = source.get(slot, at);
    cuda::Vector<T, kLength> result;
#pragma unroll
    for (int k = 0; k < kLength; ++k) {
      const C value = static_cast<C>(vector.values[k]) - seen.max;
      result.values[k] = static_cast<T>(logarithm ? value - number : std::exp(value) * number);
    }
    cuda::store_vector<T, kLength>(y + row * n + at, result);
  });
}

template <class Variant, bool logarithm, class T>
__global__ void __launch_bounds__(cuda::kRowThreads, 2)
    softmax_backward_kernel(int64_t rows, int64_t n, const T* grad, const T* y, T* out) {
  using C = compute_type<T>;
  constexpr int kLength = Variant::kLength;
  const int64_t row = Variant::row();
  if (row >= rows) return;
  const cuda::Row<Variant, T> slopes(grad + row * n, n);
  const cuda::Row<Variant, T> results(y + row * n, n);
  C sum = C(0);
  Variant::for_vectors(n, [&](int slot, int64_t at) {
    const auto g = slopes.get(slot, at);
    const auto p = results.get(slot, at);
#pragma unroll
    for (int k = 0; k < kLength; ++k)
      sum += logarithm ? static_cast<C>(g.values[k]) : static_cast<C>(g.values[k]) * static_cast<C>(p.values[k]);
  });
  sum = Variant::reduce(sum, cuda::SumOf{});
  Variant::for_vectors(n, [&](int slot, int64_t at) {
    const auto g = slopes.get(slot, at);
    const auto p = results.get(slot, at);
    cuda::Vector<T, kLength> result;
#pragma unroll
    for (int k = 0; k < kLength; ++k) {
      const C slope = static_cast<C>(g.values[k]);
      const C value = static_cast<C>(p.values[k]);
      result.values[k] = static_cast<T>(logarithm ? slope - std::exp(value) * sum : value * (slope - sum));
    }
    cuda::store_vector<T, kLength>(out + row * n + at, result);
  });
}

// Calls run(rows, n) on tensors in which `dim` is the last dimension, transposing there and back if necessary.
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
      cuda::with_row_variant<T, 8>(n, cuda::start_aligned({&source, &result}), [&]<class Variant>(Variant) {
        cuda::launch(cuda::row_launch<Variant>(what, rows), x.device(), &softmax_kernel<Variant, logarithm, T>, rows, n,
                     static_cast<const T*>(source.raw_data()), static_cast<T*>(result.raw_data()));
      });
    });
  });
}

template <bool logarithm>
Tensor backward(const char* what, const Tensor& grad, const Tensor& y, int dim) {
  const bool moves = y.dim() > 0 && dim != y.dim() - 1;
  const Tensor values = contiguous(moves ? view::transpose(y, dim, -1) : y);
  return along(grad, dim, [&](const Tensor& source, const Tensor& result, int64_t rows, int64_t n) {
    visit_floating(grad.dtype(), what, [&]<class T>() {
      cuda::with_row_variant<T, 4>(n, cuda::start_aligned({&source, &values, &result}), [&]<class Variant>(Variant) {
        cuda::launch(cuda::row_launch<Variant>(what, rows), grad.device(),
                     &softmax_backward_kernel<Variant, logarithm, T>, rows, n, static_cast<const T*>(source.raw_data()),
                     static_cast<const T*>(values.raw_data()), static_cast<T*>(result.raw_data()));
      });
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
