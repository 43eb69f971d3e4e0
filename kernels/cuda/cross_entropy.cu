// CUDA kernels of cross_entropy: log_softmax and the negative log likelihood in one kernel. Logits [N, C] are rows,
// processed by a warp or a block each (detail/rows.h); a row that fits in its threads' registers is read once. Logits
// [N, C, d1...] are columns of stride d1 * ..., and each thread processes a few adjacent ones. Forward writes two
// numbers per position, from which backward recomputes the probabilities.
#include <brigade/kernels/loss.h>

#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/loss.h>
#include <brigade/kernels/cuda/detail/loss_sums.h>
#include <brigade/kernels/cuda/detail/map.h>
#include <brigade/kernels/cuda/detail/rows.h>
#include <brigade/kernels/elementwise.h>

#include <cmath>
#include <limits>
#include <type_traits>

namespace brigade::kernels {
namespace {

constexpr int kThreads = 128;  // for columns
constexpr int kClasses = 4;    // classes of a column that are read at once

// Out: the dtype of the logits, or the type in which losses are summed. log_sums [2, rows].
template <class Variant, class T, class Out>
__global__ void __launch_bounds__(cuda::kRowThreads, 2)
    cross_entropy_rows_kernel(int64_t rows, int64_t n, cuda::Targets targets, ClassShares<compute_type<T>> shares,
                              const T* logits, compute_type<T>* log_sums, Out* losses) {
  using C = compute_type<T>;
  constexpr int kLength = Variant::kLength;
  const int64_t row = Variant::row();
  if (row >= rows) return;  // a whole warp, for short rows
  const cuda::Row<Variant, T> source(logits + row * n, n);
  const auto seen = cuda::max_and_sum(source, n);
  C distances = C(0);
  if (shares.share != C(0)) {
    Variant::for_vectors(n, [&](int slot, int64_t at) {
      const auto vector = source.get(slot, at);
#pragma unroll
      for (int k = 0; k < kLength; ++k)
        distances += shares.weight_of(at + k) * (static_cast<C>(vector.values[k]) - seen.max);
    });
    distances = Variant::reduce(distances, cuda::SumOf{});
  }
  if (threadIdx.x != 0) return;
  const C log_sum = std::log(seen.sum);
  log_sums[row] = seen.max;
  log_sums[rows + row] = log_sum;
  const int64_t wanted = targets.at(row);
  losses[row] = static_cast<Out>(
      wanted < 0 ? C(0) : shares.loss(wanted, log_sum, static_cast<C>(logits[row * n + wanted]) - seen.max, distances));
}

// Each thread processes positions [first, first + length) of [rows, spatial]; spatial must be a multiple of `length`.
template <int length, class T, class Out>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_columns_kernel(int64_t positions, int64_t classes, int64_t spatial, cuda::Targets targets,
                                 ClassShares<compute_type<T>> shares, const T* logits, compute_type<T>* log_sums,
                                 Out* losses) {
  using C = compute_type<T>;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * length;
  if (first >= positions) return;
  const T* in = logits + first / spatial * classes * spatial + first % spatial;
  cuda::MaxAndSum<C> seen[length];
  C distances[length] = {};
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
      for (int k = 0; k < length; ++k)  // past the last class: the neutral element
        values[k][u] = c + u < classes ? static_cast<C>(x.values[k]) : -std::numeric_limits<C>::infinity();
    }
#pragma unroll
    for (int k = 0; k < length; ++k)
      seen[k] = cuda::with_values(seen[k], values[k]);
  }
  for (int64_t c = 0; c < classes && shares.share != C(0); ++c) {
    const auto x = cuda::load_vector<T, length>(in + c * spatial);
#pragma unroll
    for (int k = 0; k < length; ++k)
      distances[k] += shares.weight_of(c) * (static_cast<C>(x.values[k]) - seen[k].max);
  }
#pragma unroll
  for (int k = 0; k < length; ++k) {
    const C log_sum = std::log(seen[k].sum);
    log_sums[first + k] = seen[k].max;
    log_sums[positions + first + k] = log_sum;
    const int64_t wanted = targets.at(first + k);
    losses[first + k] = static_cast<Out>(
        wanted < 0
            ? C(0)
            : shares.loss(wanted, log_sum, static_cast<C>(in[wanted * spatial + k]) - seen[k].max, distances[k]));
  }
}

// The gradient of the loss at a position, its target class, and the numbers that determine its probabilities.
template <class C>
struct Slope {
  C value;
  int64_t wanted;
  C max, log_sum, total;

  // The gradient with respect to the logit of class c.
  __device__ C operator()(C logit, int64_t c, const ClassShares<C>& shares) const {
    if (wanted < 0) return C(0);
    const C pull = total * std::exp((logit - max) - log_sum);
    return value * (pull - shares.of_each(c) - (c == wanted ? shares.of_target(c) : C(0)));
  }
};
template <class T>
struct Slopes {
  using C = compute_type<T>;
  const int64_t* classes;
  int64_t ignore_index, positions;  // the forward has reported invalid targets
  const T* grad;
  bool one_grad;
  const double* denominator;
  const C* log_sums;
  ClassShares<C> shares;

  __device__ Slope<C> at(int64_t position) const {
    const int64_t wanted = classes[position];
    if (wanted == ignore_index || wanted < 0 || wanted >= shares.classes) return {C(0), -1, C(0), C(0), C(0)};
    const C scale = denominator ? static_cast<C>(1.0 / *denominator) : C(1);
    return {static_cast<C>(grad[one_grad ? 0 : position]) * scale, wanted, log_sums[position],
            log_sums[positions + position], shares.total(wanted)};
  }
};

template <class Variant, class T>
__global__ void __launch_bounds__(cuda::kRowThreads, 2)
    cross_entropy_rows_backward_kernel(int64_t rows, int64_t n, Slopes<T> slopes, const T* logits, T* result) {
  using C = compute_type<T>;
  constexpr int kLength = Variant::kLength;
  const int64_t row = Variant::row();
  if (row >= rows) return;
  const cuda::Row<Variant, T> source(logits + row * n, n);
  const Slope<C> slope = slopes.at(row);
  Variant::for_vectors(n, [&](int slot, int64_t at) {
    auto vector = source.get(slot, at);
#pragma unroll
    for (int k = 0; k < kLength; ++k)
      vector.values[k] = static_cast<T>(slope(static_cast<C>(vector.values[k]), at + k, slopes.shares));
    cuda::store_vector<T, kLength>(result + row * n + at, vector);
  });
}

template <int length, class T>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_columns_backward_kernel(int64_t positions, int64_t classes, int64_t spatial, Slopes<T> slopes,
                                          const T* logits, T* result) {
  using C = compute_type<T>;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * length;
  if (first >= positions) return;
  const int64_t begin = first / spatial * classes * spatial + first % spatial;
  Slope<C> slope[length];
#pragma unroll
  for (int k = 0; k < length; ++k)
    slope[k] = slopes.at(first + k);
  for (int64_t c = 0; c < classes; ++c) {
    auto x = cuda::load_vector<T, length>(logits + begin + c * spatial);
#pragma unroll
    for (int k = 0; k < length; ++k)
      x.values[k] = static_cast<T>(slope[k](static_cast<C>(x.values[k]), c, slopes.shares));
    cuda::store_vector<T, length>(result + begin + c * spatial, x);
  }
}

// Calls run(length) with the number of elements per vector for columns of stride `spatial`.
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

// Computes the loss of each position, and the numbers that determine its probabilities.
template <class T, class Out>
void forward(const ClassSizes& sizes, const cuda::Targets& targets, const ClassShares<compute_type<T>>& shares,
             const Tensor& logits, const Tensor& log_sums, const Tensor& losses) {
  using C = compute_type<T>;
  const char* const what = "cross_entropy";
  const T* const in = static_cast<const T*>(logits.raw_data());
  C* const sums = static_cast<C*>(log_sums.raw_data());
  Out* const loss = static_cast<Out*>(losses.raw_data());
  const bool aligned = cuda::start_aligned({&logits});
  if (sizes.spatial == 1) {
    cuda::with_row_variant<T, 8>(sizes.classes, aligned, [&]<class Variant>(Variant) {
      cuda::launch(cuda::row_launch<Variant>(what, sizes.rows), logits.device(),
                   &cross_entropy_rows_kernel<Variant, T, Out>, sizes.rows, sizes.classes, targets, shares, in, sums,
                   loss);
    });
    return;
  }
  const int64_t positions = sizes.rows * sizes.spatial;
  with_column_length<T>(sizes.spatial, aligned, [&]<int length>(std::integral_constant<int, length>) {
    cuda::launch(column_launch(what, positions, length), logits.device(), &cross_entropy_columns_kernel<length, T, Out>,
                 positions, sizes.classes, sizes.spatial, targets, shares, in, sums, loss);
  });
}

template <class T>
void backward(const ClassSizes& sizes, const Slopes<T>& slopes, const Tensor& logits, const Tensor& result) {
  const char* const what = "cross_entropy_backward";
  const T* const in = static_cast<const T*>(logits.raw_data());
  T* const out = static_cast<T*>(result.raw_data());
  const bool aligned = cuda::start_aligned({&logits, &result});
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

CrossEntropy cross_entropy_cuda(const Tensor& logits, const Tensor& target, const ClassLossOptions& options) {
  const ClassLossPlan plan = prepare_class_loss("cross_entropy", logits.sizes(), logits.options(), target, options);
  const Device device = logits.device();
  const Tensor source = contiguous(logits);
  const bool each = options.reduction == Reduction::None;
  CrossEntropy result;
  result.loss = empty(each ? target.sizes() : Shape{}, logits.options());
  if (options.reduction == Reduction::Mean) result.denominator = empty({}, {kFloat64, device});
  const cuda::Targets targets{static_cast<const int64_t*>(plan.target.raw_data()), options.ignore_index,
                              cuda::IndexCheck(device, kTargetClass, plan.sizes.classes)};
  visit_floating(logits.dtype(), "cross_entropy", [&]<class T>() {
    using C = compute_type<T>;
    const ClassShares<C> shares = class_shares<C>(plan, options.label_smoothing);
    result.log_sums = empty_log_sums(target.sizes(), {dtype_of<C>, device});
    if (each) return forward<T, T>(plan.sizes, targets, shares, source, result.log_sums, result.loss);
    const Tensor losses = empty(target.sizes(), {dtype_of<C>, device});
    forward<T, C>(plan.sizes, targets, shares, source, result.log_sums, losses);
    cuda::finish_class_losses<C, T>(plan, options, losses, result.denominator, result.loss);
  });
  brigade::cuda::throw_reported_if_blocking(device.index);
  return result;
}

Tensor cross_entropy_backward_cuda(const Tensor& grad, const Tensor& logits, const Tensor& target,
                                   const Tensor& log_sums, const Tensor& denominator, const ClassLossOptions& options) {
  const ClassLossPlan plan = prepare_class_loss("cross_entropy", logits.sizes(), logits.options(), target, options);
  check_loss_gradient(grad, target.sizes(), "cross_entropy");
  check_log_sums(log_sums, logits, target);
  const Tensor slope = contiguous(cast(grad, logits.dtype()));
  const Tensor source = contiguous(logits);
  const Tensor result = empty(logits.sizes(), logits.options());
  visit_floating(logits.dtype(), "cross_entropy_backward", [&]<class T>() {
    using C = compute_type<T>;
    const Slopes<T> slopes{static_cast<const int64_t*>(plan.target.raw_data()),
                           options.ignore_index,
                           target.numel(),
                           static_cast<const T*>(slope.raw_data()),
                           slope.numel() == 1,
                           data_or_null<const double>(denominator),
                           static_cast<const C*>(log_sums.raw_data()),
                           class_shares<C>(plan, options.label_smoothing)};
    backward(plan.sizes, slopes, source, result);
  });
  return result;
}

const AddKernel add_cross_entropy(cross_entropy, kCUDA, &cross_entropy_cuda);
const AddKernel add_cross_entropy_backward(cross_entropy_backward, kCUDA, &cross_entropy_backward_cuda);

}  // namespace
}  // namespace brigade::kernels
