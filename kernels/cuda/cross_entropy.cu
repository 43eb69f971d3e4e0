// The CUDA column of cross_entropy: log_softmax and the negative log likelihood in one kernel. Logits [N, C] are rows,
// a warp or a block each; logits [N, C, d1...] are columns of stride d1 * ..., and each thread takes a few neighbouring
// ones. A row is read twice, the second time from cache, and its log probabilities are written once.
#include <brigade/kernels/loss.h>

#include <brigade/kernels/cuda/detail/index_check.h>
#include <brigade/kernels/cuda/detail/loss_sums.h>
#include <brigade/kernels/cuda/detail/map.h>
#include <brigade/kernels/cuda/detail/row_threads.h>
#include <brigade/kernels/detail/loss.h>
#include <brigade/kernels/elementwise.h>

#include <cmath>

namespace brigade::kernels {

namespace {

constexpr int kThreads = 128;  // of columns

// Which targets count.
struct Targets {
  const int64_t* classes;
  int64_t ignore_index;
  cuda::IndexCheck check;

  // The class at a position; -1: none that counts. Bad ones are reported.
  __device__ int64_t at(int64_t position) const {
    const int64_t wanted = classes[position];
    return wanted != ignore_index && check(wanted, position) ? wanted : -1;
  }
};

// n is a multiple of `length`. Out: the dtype of the logits, or the one that losses are summed in.
template <bool short_rows, int length, class T, class Out>
__global__ void __launch_bounds__(cuda::kRowThreads)
    cross_entropy_rows_kernel(int64_t rows, int64_t n, Targets targets, const T* logits, T* log_probs, Out* losses) {
  using C = compute_type<T>;
  using Threads = cuda::RowThreads<short_rows>;
  const int64_t row = Threads::row();
  if (row >= rows) return;  // a whole warp of short rows
  const T* in = logits + row * n;
  T* out = log_probs + row * n;
  auto seen = cuda::nothing_seen<C>();
  for (int64_t i = threadIdx.x * length; i < n; i += Threads::step() * length) {
    const auto x = cuda::load_vector<T, length>(in + i);
#pragma unroll
    for (int k = 0; k < length; ++k)
      cuda::see(seen, static_cast<C>(x.values[k]));
  }
  seen = Threads::reduce(seen, cuda::MergeMaxAndSum{});
  const C shift = seen.max + std::log(seen.sum);
  for (int64_t i = threadIdx.x * length; i < n; i += Threads::step() * length) {
    auto x = cuda::load_vector<T, length>(in + i);
#pragma unroll
    for (int k = 0; k < length; ++k)
      x.values[k] = static_cast<T>(static_cast<C>(x.values[k]) - shift);
    cuda::store_vector<T, length>(out + i, x);
  }
  if (threadIdx.x != 0) return;
  const int64_t wanted = targets.at(row);
  losses[row] = static_cast<Out>(wanted < 0 ? C(0) : shift - static_cast<C>(in[wanted]));
}

// A thread takes positions [first, first + length) of [rows, spatial]; spatial is a multiple of `length`.
template <int length, class T, class Out>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_columns_kernel(int64_t positions, int64_t classes, int64_t spatial, Targets targets, const T* logits,
                                 T* log_probs, Out* losses) {
  using C = compute_type<T>;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * length;
  if (first >= positions) return;
  const int64_t begin = first / spatial * classes * spatial + first % spatial;
  const T* in = logits + begin;
  T* out = log_probs + begin;
  cuda::MaxAndSum<C> seen[length];
#pragma unroll
  for (int k = 0; k < length; ++k)
    seen[k] = cuda::nothing_seen<C>();
  for (int64_t c = 0; c < classes; ++c) {
    const auto x = cuda::load_vector<T, length>(in + c * spatial);
#pragma unroll
    for (int k = 0; k < length; ++k)
      cuda::see(seen[k], static_cast<C>(x.values[k]));
  }
#pragma unroll
  for (int k = 0; k < length; ++k) {
    seen[k].max += std::log(seen[k].sum);  // what to subtract
    const int64_t wanted = targets.at(first + k);
    losses[first + k] = static_cast<Out>(wanted < 0 ? C(0) : seen[k].max - static_cast<C>(in[wanted * spatial + k]));
  }
  for (int64_t c = 0; c < classes; ++c) {
    auto x = cuda::load_vector<T, length>(in + c * spatial);
#pragma unroll
    for (int k = 0; k < length; ++k)
      x.values[k] = static_cast<T>(static_cast<C>(x.values[k]) - seen[k].max);
    cuda::store_vector<T, length>(out + c * spatial, x);
  }
}

// The gradient of the loss at a position, and its class.
template <class C>
struct Slope {
  C value;
  int64_t wanted;

  // With respect to the logit of class c.
  __device__ C operator()(C log_prob, int64_t c) const {
    return wanted < 0 ? C(0) : value * (std::exp(log_prob) - (c == wanted ? C(1) : C(0)));
  }
};
template <class T>
struct Slopes {
  const int64_t* classes;
  int64_t ignore_index, count;  // of classes; the forward has reported bad ones
  const T* grad;
  bool one_grad;
  const double* denominator;

  __device__ Slope<compute_type<T>> at(int64_t position) const {
    using C = compute_type<T>;
    const int64_t wanted = classes[position];
    if (wanted == ignore_index || wanted < 0 || wanted >= count) return {C(0), -1};
    const C scale = denominator ? static_cast<C>(1.0 / *denominator) : C(1);
    return {static_cast<C>(grad[one_grad ? 0 : position]) * scale, wanted};
  }
};

template <bool short_rows, int length, class T>
__global__ void __launch_bounds__(cuda::kRowThreads)
    cross_entropy_rows_backward_kernel(int64_t rows, int64_t n, Slopes<T> slopes, const T* log_probs, T* result) {
  using C = compute_type<T>;
  using Threads = cuda::RowThreads<short_rows>;
  const int64_t row = Threads::row();
  if (row >= rows) return;
  const Slope<C> slope = slopes.at(row);
  for (int64_t i = threadIdx.x * length; i < n; i += Threads::step() * length) {
    auto x = cuda::load_vector<T, length>(log_probs + row * n + i);
#pragma unroll
    for (int k = 0; k < length; ++k)
      x.values[k] = static_cast<T>(slope(static_cast<C>(x.values[k]), i + k));
    cuda::store_vector<T, length>(result + row * n + i, x);
  }
}

template <int length, class T>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_columns_backward_kernel(int64_t positions, int64_t classes, int64_t spatial, Slopes<T> slopes,
                                          const T* log_probs, T* result) {
  using C = compute_type<T>;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * length;
  if (first >= positions) return;
  const int64_t begin = first / spatial * classes * spatial + first % spatial;
  Slope<C> slope[length];
#pragma unroll
  for (int k = 0; k < length; ++k)
    slope[k] = slopes.at(first + k);
  for (int64_t c = 0; c < classes; ++c) {
    auto x = cuda::load_vector<T, length>(log_probs + begin + c * spatial);
#pragma unroll
    for (int k = 0; k < length; ++k)
      x.values[k] = static_cast<T>(slope[k](static_cast<C>(x.values[k]), c));
    cuda::store_vector<T, length>(result + begin + c * spatial, x);
  }
}

// Whether rows or columns fall into whole vectors.
template <class T>
bool fits_vectors(const ClassSizes& sizes, const T* from, const T* to) {
  constexpr int kLength = cuda::kVectorLength<T>;
  return (sizes.spatial == 1 ? sizes.classes : sizes.spatial) % kLength == 0 && cuda::is_aligned(from, kLength) &&
         cuda::is_aligned(to, kLength);
}

template <int length, class T, class Out>
void launch_forward(Device device, const ClassSizes& sizes, const Targets& targets, const T* logits, T* log_probs,
                    Out* losses) {
  const char* const what = "cross_entropy";
  if (sizes.spatial == 1) {
    cuda::launch_rows(what, device, sizes.rows, sizes.classes, &cross_entropy_rows_kernel<true, length, T, Out>,
                      &cross_entropy_rows_kernel<false, length, T, Out>, targets, logits, log_probs, losses);
    return;
  }
  const int64_t positions = sizes.rows * sizes.spatial;
  cuda::launch({what, cuda::blocks_for(positions, kThreads * length), kThreads}, device,
               &cross_entropy_columns_kernel<length, T, Out>, positions, sizes.classes, sizes.spatial, targets, logits,
               log_probs, losses);
}

// Log probabilities and the loss of each position.
template <class T, class Out>
void forward(Device device, const ClassSizes& sizes, const Targets& targets, const T* logits, T* log_probs,
             Out* losses) {
  if (fits_vectors(sizes, logits, log_probs)) {
    launch_forward<cuda::kVectorLength<T>>(device, sizes, targets, logits, log_probs, losses);
  } else {
    launch_forward<1>(device, sizes, targets, logits, log_probs, losses);
  }
}

template <int length, class T>
void launch_backward(Device device, const ClassSizes& sizes, const Slopes<T>& slopes, const T* log_probs, T* result) {
  const char* const what = "cross_entropy_backward";
  if (sizes.spatial == 1) {
    cuda::launch_rows(what, device, sizes.rows, sizes.classes, &cross_entropy_rows_backward_kernel<true, length, T>,
                      &cross_entropy_rows_backward_kernel<false, length, T>, slopes, log_probs, result);
    return;
  }
  const int64_t positions = sizes.rows * sizes.spatial;
  cuda::launch({what, cuda::blocks_for(positions, kThreads * length), kThreads}, device,
               &cross_entropy_columns_backward_kernel<length, T>, positions, sizes.classes, sizes.spatial, slopes,
               log_probs, result);
}

CrossEntropy cross_entropy_cuda(const Tensor& logits, const Tensor& target, Reduction reduction, int64_t ignore_index) {
  const ClassSizes sizes = check_classes(logits, target);
  const Device device = logits.device();
  const Tensor source = contiguous(logits);
  const Tensor classes = contiguous(target);
  CrossEntropy result;
  result.log_probs = empty(logits.sizes(), logits.options());
  result.loss = empty(reduction == Reduction::None ? target.sizes() : Shape{}, logits.options());
  if (reduction == Reduction::Mean) result.denominator = empty({}, {kFloat64, device});
  const Targets targets{static_cast<const int64_t*>(classes.raw_data()), ignore_index,
                        cuda::IndexCheck(device, kTargetClass, sizes.classes)};
  visit_floating(logits.dtype(), "cross_entropy", [&]<class T>() {
    using C = compute_type<T>;
    const T* in = static_cast<const T*>(source.raw_data());
    T* log_probs = static_cast<T*>(result.log_probs.raw_data());
    T* loss = static_cast<T*>(result.loss.raw_data());
    if (reduction == Reduction::None) return forward(device, sizes, targets, in, log_probs, loss);
    const Tensor wide = empty(target.sizes(), {dtype_of<C>, device});
    C* const losses = static_cast<C*>(wide.raw_data());
    forward(device, sizes, targets, in, log_probs, losses);
    cuda::LossFinish finish;
    finish.divide = reduction == Reduction::Mean;
    if (finish.divide) finish.denominator = static_cast<double*>(result.denominator.raw_data());
    cuda::sum_losses<C, T>(device, target.numel(), losses, targets.classes, ignore_index, finish, loss);
  });
  brigade::cuda::throw_reported_if_blocking(device.index);
  return result;
}

Tensor cross_entropy_backward_cuda(const Tensor& grad, const Tensor& log_probs, const Tensor& target,
                                   const Tensor& denominator, int64_t ignore_index) {
  const ClassSizes sizes = check_classes(log_probs, target);
  check_loss_gradient(grad, target.sizes(), "cross_entropy");
  const Tensor slope = contiguous(cast(grad, log_probs.dtype()));
  const Tensor source = contiguous(log_probs);
  const Tensor classes = contiguous(target);
  Tensor result = empty(log_probs.sizes(), log_probs.options());
  visit_floating(log_probs.dtype(), "cross_entropy_backward", [&]<class T>() {
    const Slopes<T> slopes{static_cast<const int64_t*>(classes.raw_data()),
                           ignore_index,
                           sizes.classes,
                           static_cast<const T*>(slope.raw_data()),
                           slope.numel() == 1,
                           denominator.defined() ? static_cast<const double*>(denominator.raw_data()) : nullptr};
    const T* in = static_cast<const T*>(source.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    if (fits_vectors(sizes, in, out)) {
      launch_backward<cuda::kVectorLength<T>>(log_probs.device(), sizes, slopes, in, out);
    } else {
      launch_backward<1>(log_probs.device(), sizes, slopes, in, out);
    }
  });
  return result;
}

const AddKernel add_cross_entropy(cross_entropy, kCUDA, &cross_entropy_cuda);
const AddKernel add_cross_entropy_backward(cross_entropy_backward, kCUDA, &cross_entropy_backward_cuda);

}  // namespace

}  // namespace brigade::kernels
