// CUDA kernels of loss.h: losses are computed and summed in one pass, without a temporary buffer.
#include <brigade/kernels/loss.h>

#include <brigade/kernels/common/loss.h>
#include <brigade/kernels/cuda/detail/loss_sums.h>
#include <brigade/kernels/cuda/detail/map.h>
#include <brigade/kernels/elementwise.h>

#include <cmath>

namespace brigade::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kPairPiece = 1 << 14;       // elements per block
constexpr int64_t kMostPairPieces = 1 << 13;  // limited by the single block that sums them

struct DeviceMath {
  template <class C>
  __device__ static C exp(C x) {
    return std::exp(x);
  }
  template <class C>
  __device__ static C log(C x) {
    return std::log(x);
  }
  template <class C>
  __device__ static C log1p(C x) {
    return std::log1p(x);
  }
  template <class C>
  __device__ static C log1p_unit(C x) {
    return std::log1p(x);
  }
};

// The loss is selected at run time: fewer kernels to compile, and they are memory-bound anyway.
struct LossValue {
  PairLossKind kind;
  double parameter;
  template <class C>
  __device__ C operator()(C x, C z) const {
    return pair_loss_value<DeviceMath>(kind, x, z, static_cast<C>(parameter));
  }
};
struct LossSlope {
  PairLossKind kind;
  double parameter;
  PairSide side;
  template <class C>
  __device__ C operator()(C x, C z) const {
    const C number = static_cast<C>(parameter);
    return side == PairSide::Input ? pair_loss_input_slope<DeviceMath>(kind, x, z, number)
                                   : pair_loss_target_slope<DeviceMath>(kind, x, z, number);
  }
};

// losses[i] = f(x[i], z[i])
template <int length, class T, class F>
__global__ void __launch_bounds__(kThreads) pair_loss_kernel(int64_t count, F f, const T* x, const T* z, T* losses) {
  using C = compute_type<T>;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * length;
  if (first >= count) return;
  if (first + length <= count) {
    const auto a = cuda::load_vector<T, length>(x + first);
    const auto b = cuda::load_vector<T, length>(z + first);
    cuda::Vector<T, length> y;
#pragma unroll
    for (int k = 0; k < length; ++k)
      y.values[k] = static_cast<T>(f(static_cast<C>(a.values[k]), static_cast<C>(b.values[k])));
    cuda::store_vector<T, length>(losses + first, y);
    return;
  }
  for (int64_t i = first; i < count; ++i)
    losses[i] = static_cast<T>(f(static_cast<C>(x[i]), static_cast<C>(z[i])));
}

// Block b: sums[b] = sum of f over [b * piece, (b + 1) * piece). A piece is a whole number of vectors.
template <int length, class T, class F>
__global__ void __launch_bounds__(kThreads)
    pair_sum_kernel(int64_t count, int64_t piece, F f, const T* x, const T* z, compute_type<T>* sums) {
  using C = compute_type<T>;
  BRIGADE_SHARED(C, partial, [kThreads / cuda::kWarp]);
  const int64_t end = ::min(count, (static_cast<int64_t>(blockIdx.x) + 1) * piece);
  C sum = C(0);
  int64_t i = blockIdx.x * piece + static_cast<int64_t>(threadIdx.x) * length;
#pragma unroll 2
  for (; i + length <= end; i += kThreads * length) {
    const auto a = cuda::load_vector<T, length>(x + i);
    const auto b = cuda::load_vector<T, length>(z + i);
#pragma unroll
    for (int k = 0; k < length; ++k)
      sum += f(static_cast<C>(a.values[k]), static_cast<C>(b.values[k]));
  }
  for (; i < end; ++i)
    sum += f(static_cast<C>(x[i]), static_cast<C>(z[i]));
  sum = cuda::block_reduce(sum, cuda::SumOf{}, &partial[0]);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// out[i] = grad * scale * f(x[i], z[i]), with grad[i] or a single grad for all i.
template <int length, class T, class F>
__global__ void __launch_bounds__(kThreads)
    pair_slope_kernel(int64_t count, F f, double scale, bool one_grad, const T* grad, const T* x, const T* z, T* out) {
  using C = compute_type<T>;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * length;
  if (first >= count) return;
  const C factor = (one_grad ? static_cast<C>(grad[0]) : C(1)) * static_cast<C>(scale);
  if (first + length <= count) {
    const auto a = cuda::load_vector<T, length>(x + first);
    const auto b = cuda::load_vector<T, length>(z + first);
    cuda::Vector<T, length> g{};
    if (!one_grad) g = cuda::load_vector<T, length>(grad + first);
    cuda::Vector<T, length> y;
#pragma unroll
    for (int k = 0; k < length; ++k) {
      const C slope = one_grad ? factor : static_cast<C>(g.values[k]) * factor;
      y.values[k] = static_cast<T>(slope * f(static_cast<C>(a.values[k]), static_cast<C>(b.values[k])));
    }
    cuda::store_vector<T, length>(out + first, y);
    return;
  }
  for (int64_t i = first; i < count; ++i) {
    const C slope = one_grad ? factor : static_cast<C>(grad[i]) * factor;
    out[i] = static_cast<T>(slope * f(static_cast<C>(x[i]), static_cast<C>(z[i])));
  }
}

Tensor pair_loss_cuda(const Tensor& x, const Tensor& target, const PairLoss& loss, Reduction reduction) {
  using F = LossValue;
  const F f{loss.kind, loss.parameter};
  const char* const what = name(loss.kind);
  check_pair(x, target, what);
  const Tensor a = contiguous(x);
  const Tensor b = contiguous(target);
  const int64_t count = x.numel();
  Tensor result = empty(reduction == Reduction::None ? x.sizes() : Shape{}, x.options());
  visit_floating(x.dtype(), what, [&]<class T>() {
    using C = compute_type<T>;
    constexpr int kLength = cuda::kVectorLength<T>;
    const T* p = static_cast<const T*>(a.raw_data());
    const T* q = static_cast<const T*>(b.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    const bool vectors = cuda::is_aligned(p, kLength) && cuda::is_aligned(q, kLength);
    if (reduction == Reduction::None) {
      cuda::launch({what, cuda::blocks_for(count, kThreads * (vectors ? kLength : 1)), kThreads}, x.device(),
                   vectors ? &pair_loss_kernel<kLength, T, F> : &pair_loss_kernel<1, T, F>, count, f, p, q, out);
      return;
    }
    const int64_t most = (count + kMostPairPieces - 1) / kMostPairPieces;
    const int64_t piece = std::max(kPairPiece, (most + kLength - 1) / kLength * kLength);
    const int64_t pieces = (count + piece - 1) / piece;
    const Tensor sums = empty({pieces}, {dtype_of<C>, x.device()});
    C* const piece_sums = static_cast<C*>(sums.raw_data());
    cuda::launch({what, cuda::blocks_for(pieces, 1), kThreads}, x.device(),
                 vectors ? &pair_sum_kernel<kLength, T, F> : &pair_sum_kernel<1, T, F>, count, piece, f, p, q,
                 piece_sums);
    const double scale = reduction == Reduction::Mean ? 1.0 / static_cast<double>(count) : 1.0;
    cuda::sum_losses<C, T>(x.device(), pieces, piece_sums, {}, {.scale = scale}, out);
  });
  return result;
}

Tensor pair_loss_backward_cuda(const Tensor& grad, const Tensor& x, const Tensor& target, const PairLoss& loss,
                               PairSide side, Reduction reduction) {
  using F = LossSlope;
  const F slope{loss.kind, loss.parameter, side};
  const char* const what = name(loss.kind);
  check_pair(x, target, what);
  check_loss_gradient(grad, x.sizes(), what);
  const Tensor g = contiguous(cast(grad, x.dtype()));
  const Tensor a = contiguous(x);
  const Tensor b = contiguous(target);
  const int64_t count = x.numel();
  const double scale = reduction == Reduction::Mean ? 1.0 / static_cast<double>(count) : 1.0;
  Tensor result = empty(x.sizes(), x.options());
  visit_floating(x.dtype(), what, [&]<class T>() {
    constexpr int kLength = cuda::kVectorLength<T>;
    const T* slopes = static_cast<const T*>(g.raw_data());
    const T* p = static_cast<const T*>(a.raw_data());
    const T* q = static_cast<const T*>(b.raw_data());
    const bool one_grad = g.numel() == 1;
    const bool vectors =
        cuda::is_aligned(p, kLength) && cuda::is_aligned(q, kLength) && (one_grad || cuda::is_aligned(slopes, kLength));
    cuda::launch({what, cuda::blocks_for(count, kThreads * (vectors ? kLength : 1)), kThreads}, x.device(),
                 vectors ? &pair_slope_kernel<kLength, T, F> : &pair_slope_kernel<1, T, F>, count, slope, scale,
                 one_grad, slopes, p, q, static_cast<T*>(result.raw_data()));
  });
  return result;
}

const AddKernel add_pair_loss(pair_loss, kCUDA, &pair_loss_cuda);
const AddKernel add_pair_loss_backward(pair_loss_backward, kCUDA, &pair_loss_backward_cuda);

}  // namespace
}  // namespace brigade::kernels
