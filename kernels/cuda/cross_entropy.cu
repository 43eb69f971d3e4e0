// The CUDA column of cross_entropy: log_softmax and the negative log likelihood in one kernel. Logits [N, C] are rows,
// a warp or a block each (detail/rows.h), and a row that its threads hold is read once; logits [N, C, d1...] are
// columns of stride d1 * ..., and each thread takes a few neighbouring ones. What is read twice comes from cache the
// second time; log probabilities are written once.
#include <brigade/kernels/loss.h>

#include <brigade/kernels/cuda/detail/index_check.h>
#include <brigade/kernels/cuda/detail/loss_sums.h>
#include <brigade/kernels/cuda/detail/map.h>
#include <brigade/kernels/cuda/detail/rows.h>
#include <brigade/kernels/detail/loss.h>
#include <brigade/kernels/elementwise.h>

#include <cmath>
#include <limits>
#include <type_traits>

namespace brigade::kernels {

namespace {

constexpr int kThreads = 128;  // of columns
constexpr int kClasses = 4;    // of a column, read at once

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

// Out: the dtype of the logits, or the one that losses are summed in.
template <class Variant, class T, class Out>
__global__ void __launch_bounds__(cuda::kRowThreads, 2)
    cross_entropy_rows_kernel(int64_t rows, int64_t n, Targets targets, const T* logits, T* log_probs, Out* losses) {
  using C = compute_type<T>;
  constexpr int kLength = Variant::kLength;
  const int64_t row = Variant::row();
  if (row >= rows) return;  // a whole warp of short rows
  const cuda::Row<Variant, T> source(logits + row * n, n);
  const auto seen = cuda::max_and_sum(source, n);
  const C shift = seen.max + std::log(seen.sum);
  Variant::for_vectors(n, [&](int slot, int64_t at) {
    auto vector = source.get(slot, at);
#pragma unroll
    for (int k = 0; k < kLength; ++k)
      vector.values[k] = static_cast<T>(static_cast<C>(vector.values[k]) - shift);
    cuda::store_vector<T, kLength>(log_probs + row * n + at, vector);
  });
  if (threadIdx.x != 0) return;
  const int64_t wanted = targets.at(row);
  losses[row] = static_cast<Out>(wanted < 0 ? C(0) : shift - static_cast<C>(logits[row * n + wanted]));
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
  for (int64_t c = 0; c < classes; c += kClasses) {
    C values[length][kClasses];
#pragma unroll
    for (int u = 0; u < kClasses; ++u) {
      cuda::Vector<T, length> x;
      if (c + u < classes) x = cuda::load_vector<T, length>(in + (c + u) * spatial);
#pragma unroll
      for (int k = 0; k < length; ++k)  // past the last class, what adds nothing
        values[k][u] = c + u < classes ? static_cast<C>(x.values[k]) : -std::numeric_limits<C>::infinity();
    }
#pragma unroll
    for (int k = 0; k < length; ++k)
      seen[k] = cuda::with_values(seen[k], values[k]);
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

template <class Variant, class T>
__global__ void __launch_bounds__(cuda::kRowThreads, 2)
    cross_entropy_rows_backward_kernel(int64_t rows, int64_t n, Slopes<T> slopes, const T* log_probs, T* result) {
  using C = compute_type<T>;
  constexpr int kLength = Variant::kLength;
  const int64_t row = Variant::row();
  if (row >= rows) return;
  const cuda::Row<Variant, T> source(log_probs + row * n, n);
  const Slope<C> slope = slopes.at(row);
  Variant::for_vectors(n, [&](int slot, int64_t at) {
    auto vector = source.get(slot, at);
#pragma unroll
    for (int k = 0; k < kLength; ++k)
      vector.values[k] = static_cast<T>(slope(static_cast<C>(vector.values[k]), at + k));
    cuda::store_vector<T, kLength>(result + row * n + at, vector);
  });
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

// Calls run(length) with the elements per vector of columns that lie `spatial` apart.
template <class T, class Run>
void with_column_length(int64_t spatial, bool aligned, Run run) {
  constexpr int kLength = cuda::kVectorLength<T>;
  if (aligned && spatial % kLength == 0) {
    run(std::integral_constant<int, kLength>{});
  } else {
    run(std::integral_constant<int, 1>{});
  }
}

cuda::Launch column_launch(const char* what, int64_t positions, int length,
                           std::source_location where = std::source_location::current()) {
  return {what, cuda::blocks_for(positions, kThreads * length), kThreads, 0, where};
}

// Log probabilities and the loss of each position.
template <class T, class Out>
void forward(const ClassSizes& sizes, const Targets& targets, const Tensor& logits, const Tensor& log_probs,
             const Tensor& losses) {
  const char* const what = "cross_entropy";
  const T* const in = static_cast<const T*>(logits.raw_data());
  T* const out = static_cast<T*>(log_probs.raw_data());
  Out* const loss = static_cast<Out*>(losses.raw_data());
  const bool aligned = cuda::start_aligned({&logits, &log_probs});
  if (sizes.spatial == 1) {
    cuda::with_row_variant<T, 8>(sizes.classes, aligned, [&]<class Variant>(Variant) {
      cuda::launch(cuda::row_launch<Variant>(what, sizes.rows), logits.device(),
                   &cross_entropy_rows_kernel<Variant, T, Out>, sizes.rows, sizes.classes, targets, in, out, loss);
    });
    return;
  }
  const int64_t positions = sizes.rows * sizes.spatial;
  with_column_length<T>(sizes.spatial, aligned, [&]<int length>(std::integral_constant<int, length>) {
    cuda::launch(column_launch(what, positions, length), logits.device(), &cross_entropy_columns_kernel<length, T, Out>,
                 positions, sizes.classes, sizes.spatial, targets, in, out, loss);
  });
}

template <class T>
void backward(const ClassSizes& sizes, const Slopes<T>& slopes, const Tensor& log_probs, const Tensor& result) {
  const char* const what = "cross_entropy_backward";
  const T* const in = static_cast<const T*>(log_probs.raw_data());
  T* const out = static_cast<T*>(result.raw_data());
  const bool aligned = cuda::start_aligned({&log_probs, &result});
  if (sizes.spatial == 1) {
    cuda::with_row_variant<T, 8>(sizes.classes, aligned, [&]<class Variant>(Variant) {
      cuda::launch(cuda::row_launch<Variant>(what, sizes.rows), result.device(),
                   &cross_entropy_rows_backward_kernel<Variant, T>, sizes.rows, sizes.classes, slopes, in, out);
    });
    return;
  }
  const int64_t positions = sizes.rows * sizes.spatial;
  with_column_length<T>(sizes.spatial, aligned, [&]<int length>(std::integral_constant<int, length>) {
    cuda::launch(column_launch(what, positions, length), result.device(),
                 &cross_entropy_columns_backward_kernel<length, T>, positions, sizes.classes, sizes.spatial, slopes, in,
                 out);
  });
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
    if (reduction == Reduction::None) return forward<T, T>(sizes, targets, source, result.log_probs, result.loss);
    const Tensor losses = empty(target.sizes(), {dtype_of<C>, device});
    forward<T, C>(sizes, targets, source, result.log_probs, losses);
    cuda::LossFinish finish;
    finish.divide = reduction == Reduction::Mean;
    if (finish.divide) finish.denominator = static_cast<double*>(result.denominator.raw_data());
    cuda::sum_losses<C, T>(device, target.numel(), static_cast<const C*>(losses.raw_data()), targets.classes,
                           ignore_index, finish, static_cast<T*>(result.loss.raw_data()));
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
    backward(sizes, slopes, source, result);
  });
  return result;
}

const AddKernel add_cross_entropy(cross_entropy, kCUDA, &cross_entropy_cuda);
const AddKernel add_cross_entropy_backward(cross_entropy_backward, kCUDA, &cross_entropy_backward_cuda);

}  // namespace

}  // namespace brigade::kernels
