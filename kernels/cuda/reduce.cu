// CUDA kernels of reduce.h. Long rows and columns are cut into pieces of a fixed length, whose sums a second kernel
// adds: the order of additions depends only on the shape.
#include <brigade/kernels/reduce.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/reduce.h>
#include <brigade/kernels/cuda/detail/row_reduce.h>
#include <brigade/kernels/cuda/detail/vector.h>

#include <algorithm>

namespace brigade::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kRowsPerBlock = 4;    // for short rows: one warp each
constexpr int64_t kShortRow = 512;  // elements
constexpr int64_t kRowPiece = 1 << 14;
constexpr int kColumns = 32;          // per block
constexpr int kGroups = 8;            // of rows, per block
constexpr int64_t kColumnPiece = 64;  // minimum number of rows
constexpr int64_t kBlocks = 1024;     // enough for any device

template <class T>
constexpr int kVectorLength = cuda::kVectorBytes / static_cast<int>(sizeof(T));

// Post-processing of a sum.
struct Finish {
  double scale = 1;
  bool accumulate = false;
  template <class Out, class Acc>
  __device__ void operator()(Out* out, Acc sum) const {
    if (scale != 1.0) sum = static_cast<Acc>(static_cast<double>(sum) * scale);
    if (accumulate) sum += static_cast<Acc>(*out);
    *out = static_cast<Out>(sum);
  }
};

// Row i consists of elements [i * length, (i + 1) * length) of `total`; the last may be shorter. With vectors, each row
// has to start on a vector; the remainder at its end is read element by element.
template <bool short_rows, int vector, class T, class Acc, class Out>
__global__ void __launch_bounds__(kThreads)
    sum_rows_kernel(int64_t rows, int64_t length, int64_t total, const T* x, Out* out, Finish finish) {
  constexpr int kStep = short_rows ? cuda::kWarp : kThreads;
  const int64_t row = short_rows ? static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.y : blockIdx.x;
  if (row >= rows) return;  // a whole warp, for short rows
  const int64_t begin = row * length;
  const int64_t end = ::min(total, begin + length);
  const int64_t vectors_end = end - (end - begin) % vector;
  Acc sum = Acc(0);
#pragma unroll 4
  for (int64_t i = begin + threadIdx.x * vector; i < vectors_end; i += kStep * vector) {
    const auto values = cuda::load_vector<T, vector>(x + i);
    Acc part = Acc(0);
#pragma unroll
    for (int k = 0; k < vector; ++k)
      part += static_cast<Acc>(static_cast<compute_type<T>>(values.values[k]));
    sum += part;
  }
  if (vectors_end + threadIdx.x < end)
    sum += static_cast<Acc>(static_cast<compute_type<T>>(x[vectors_end + threadIdx.x]));
  if constexpr (short_rows) {
    sum = cuda::warp_reduce(sum, cuda::SumOf{});
  } else {
    BRIGADE_SHARED(Acc, partial, [kThreads / cuda::kWarp]);
    sum = cuda::block_reduce(sum, cuda::SumOf{}, &partial[0]);
  }
  if (threadIdx.x == 0) finish(out + row, sum);
}

// x is [outer, reduced, inner]; piece p of a column goes to out [outer, pieces, inner]. A block processes kColumns
// vectors of columns, and each of its groups every kGroups-th row; then each group finishes some of the columns.
template <int vector, class T, class Acc, class Out>
__global__ void __launch_bounds__(kColumns* kGroups)
    sum_columns_kernel(int64_t reduced, int64_t inner, int64_t piece, const T* x, Out* out, Finish finish) {
  BRIGADE_SHARED(Acc, partial, [kGroups][vector][kColumns]);
  const int64_t strips = (inner + kColumns * vector - 1) / (kColumns * vector);
  const int64_t o = blockIdx.x / strips;
  const int64_t column = (blockIdx.x % strips * kColumns + threadIdx.x) * vector;
  const int64_t begin = blockIdx.y * piece;
  const int64_t end = ::min(reduced, begin + piece);
  Acc sums[vector] = {};
  if (column < inner) {
#pragma unroll 4
    for (int64_t r = begin + threadIdx.y; r < end; r += kGroups) {
      const auto values = cuda::load_vector<T, vector>(x + (o * reduced + r) * inner + column);
#pragma unroll
      for (int k = 0; k < vector; ++k)
        sums[k] += static_cast<Acc>(static_cast<compute_type<T>>(values.values[k]));
    }
  }
#pragma unroll
  for (int k = 0; k < vector; ++k)
    partial[threadIdx.y][k][threadIdx.x] = sums[k];
  __syncthreads();
  if (column >= inner) return;
  for (int k = static_cast<int>(threadIdx.y); k < vector; k += kGroups) {
    Acc sum = partial[0][k][threadIdx.x];
    for (int g = 1; g < kGroups; ++g)
      sum += partial[g][k][threadIdx.x];
    finish(out + (o * gridDim.y + blockIdx.y) * inner + column + k, sum);
  }
}

template <class T>
bool takes_vectors(int64_t rows, int64_t length, const T* x) {
  constexpr int kVector = kVectorLength<T>;
  return (rows == 1 || length % kVector == 0) && cuda::is_aligned(x, kVector);
}

template <class T, class Acc, class Out>
void sum_long_rows(Device device, int64_t rows, int64_t length, int64_t total, const T* x, Out* out,
                   const Finish& finish) {
  const auto kernel = takes_vectors(rows, length, x) ? &sum_rows_kernel<false, kVectorLength<T>, T, Acc, Out>
                                                     : &sum_rows_kernel<false, 1, T, Acc, Out>;
  cuda::launch({"sum_rows", cuda::blocks_for(rows, 1), kThreads}, device, kernel, rows, length, total, x, out, finish);
}

template <class T, class Acc, class Out>
void sum_rows(Device device, int64_t rows, int64_t length, const T* x, Out* out, const Finish& finish) {
  const int64_t total = rows * length;
  if (length > kShortRow) return sum_long_rows<T, Acc, Out>(device, rows, length, total, x, out, finish);
  const auto kernel = takes_vectors(rows, length, x) ? &sum_rows_kernel<true, kVectorLength<T>, T, Acc, Out>
                                                     : &sum_rows_kernel<true, 1, T, Acc, Out>;
  cuda::launch({"sum_rows", cuda::blocks_for(rows, kRowsPerBlock), dim3(cuda::kWarp, kRowsPerBlock)}, device, kernel,
               rows, length, total, x, out, finish);
}

// The vector length for columns; 1 if vectors would leave most of a warp idle. Independent of the alignment, so that
// the order of additions is, too.
template <class T>
int column_vector(int64_t inner) {
  constexpr int kVector = kVectorLength<T>;
  return inner % kVector == 0 && inner >= kColumns / 2 * kVector ? kVector : 1;
}
// The number of blocks along the columns.
int64_t column_blocks(int64_t outer, int64_t inner, int vector) {
  return outer * ((inner + kColumns * vector - 1) / (kColumns * vector));
}

template <class T, class Acc, class Out>
void sum_columns(Device device, int64_t outer, int64_t reduced, int64_t inner, int64_t pieces, int64_t piece,
                 const T* x, Out* out, const Finish& finish) {
  constexpr int kVector = kVectorLength<T>;
  const int vector = cuda::is_aligned(x, kVector) ? column_vector<T>(inner) : 1;
  cuda::launch(
      {"sum_columns", dim3(static_cast<unsigned>(column_blocks(outer, inner, vector)), static_cast<unsigned>(pieces)),
       dim3(kColumns, kGroups)},
      device, vector > 1 ? &sum_columns_kernel<kVector, T, Acc, Out> : &sum_columns_kernel<1, T, Acc, Out>, reduced,
      inner, piece, x, out, finish);
}

template <class T>
void sum_into(const ReductionPlan& r, double scale) {
  using Out = sum_type<T>;
  using Acc = sum_accumulator<T>;
  const Device device = r.out.device();
  const T* x = static_cast<const T*>(r.x.raw_data());
  Out* out = static_cast<Out*>(r.out.raw_data());
  const Finish finish{scale, r.accumulate};
  if (r.outer == 0 || r.inner == 0) return;
  if (r.inner == 1 && (r.outer > 1 || r.reduced <= 2 * kRowPiece)) {
    sum_rows<T, Acc, Out>(device, r.outer, r.reduced, x, out, finish);
    return;
  }
  if (r.inner == 1) {
    const int64_t pieces = (r.reduced + kRowPiece - 1) / kRowPiece;
    const Tensor partial = empty({pieces}, {dtype_of<Acc>, device});
    Acc* sums = static_cast<Acc*>(partial.raw_data());
    sum_long_rows<T, Acc, Acc>(device, pieces, kRowPiece, r.reduced, x, sums, Finish{});
    // One row at the start of an allocation: always aligned.
    const bool is_short = pieces <= kShortRow;
    cuda::launch({"sum_rows", 1, is_short ? dim3(cuda::kWarp) : dim3(kThreads)}, device,
                 is_short ? &sum_rows_kernel<true, kVectorLength<Acc>, Acc, Acc, Out>
                          : &sum_rows_kernel<false, kVectorLength<Acc>, Acc, Acc, Out>,
                 1, pieces, pieces, sums, out, finish);
    return;
  }
  const int64_t beside = column_blocks(r.outer, r.inner, column_vector<T>(r.inner));
  const int64_t wanted = std::clamp<int64_t>(r.reduced / kColumnPiece, 1, std::max<int64_t>(1, kBlocks / beside));
  const int64_t piece = (r.reduced + wanted - 1) / wanted;
  if (piece == r.reduced) {
    sum_columns<T, Acc, Out>(device, r.outer, r.reduced, r.inner, 1, piece, x, out, finish);
    return;
  }
  const int64_t pieces = (r.reduced + piece - 1) / piece;
  const Tensor partial = empty({r.outer, pieces, r.inner}, {dtype_of<Acc>, device});
  Acc* sums = static_cast<Acc*>(partial.raw_data());
  sum_columns<T, Acc, Acc>(device, r.outer, r.reduced, r.inner, pieces, piece, x, sums, Finish{});
  sum_columns<Acc, Acc, Out>(device, r.outer, pieces, r.inner, 1, pieces, sums, out, finish);
}

Tensor reduce(const Tensor& x, const ReduceOptions& options, bool mean) {
  const ReductionPlan reduction = prepare_sum(x, options);
  const double scale = mean ? 1.0 / static_cast<double>(reduction.reduced) : 1.0;
  visit_dtype(x.dtype(), [&]<class T>() { sum_into<T>(reduction, scale); });
  return reduction.out;
}

Tensor sum_cuda(const Tensor& x, const ReduceOptions& options) { return reduce(x, options, false); }
Tensor mean_cuda(const Tensor& x, const ReduceOptions& options) {
  check_floating(x.dtype(), "mean");
  return reduce(x, options, true);
}

// A NaN wins, and among equals the first.
template <bool maximum, class C>
__device__ bool is_better(C candidate, int64_t candidate_at, C champion, int64_t champion_at) {
  if (champion_at < 0) return candidate_at >= 0;
  if (candidate_at < 0) return false;
  const bool candidate_nan = candidate != candidate;
  const bool champion_nan = champion != champion;
  if (candidate_nan || champion_nan) {
    if (candidate_nan && champion_nan) return candidate_at < champion_at;
    return candidate_nan;
  }
  if (candidate == champion) return candidate_at < champion_at;
  return maximum ? candidate > champion : candidate < champion;
}

// One warp per result.
template <bool maximum, class T>
__global__ void __launch_bounds__(kThreads)
    extremes_kernel(int64_t count, int64_t length, int64_t inner, const T* x, T* values, int64_t* indices) {
  using C = compute_type<T>;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.y;
  if (i >= count) return;
  const T* row = x + i / inner * length * inner + i % inner;
  C best = C(0);
  int64_t at = -1;
  for (int64_t j = threadIdx.x; j < length; j += cuda::kWarp) {
    const C value = static_cast<C>(row[j * inner]);
    if (is_better<maximum>(value, j, best, at)) {
      best = value;
      at = j;
    }
  }
  for (int offset = cuda::kWarp / 2; offset > 0; offset /= 2) {
    const C other = cuda::shuffle_xor(best, offset);
    const int64_t other_at = cuda::shuffle_xor(at, offset);
    if (is_better<maximum>(other, other_at, best, at)) {
      best = other;
      at = other_at;
    }
  }
  if (threadIdx.x == 0) {
    values[i] = row[at * inner];
    indices[i] = at;
  }
}

template <bool maximum>
Extremes extremes(const Tensor& x, int dim, bool keepdim) {
  const ExtremesPlan plan = prepare_extremes(x, dim, keepdim);
  const int64_t count = plan.result.values.numel();
  visit_dtype(x.dtype(), [&]<class T>() {
    cuda::launch({maximum ? "max" : "min", cuda::blocks_for(count, kRowsPerBlock), dim3(cuda::kWarp, kRowsPerBlock)},
                 x.device(), &extremes_kernel<maximum, T>, count, plan.length, plan.inner,
                 static_cast<const T*>(plan.x.raw_data()), static_cast<T*>(plan.result.values.raw_data()),
                 static_cast<int64_t*>(plan.result.indices.raw_data()));
  });
  return plan.result;
}

Extremes max_cuda(const Tensor& x, int dim, bool keepdim) { return extremes<true>(x, dim, keepdim); }
Extremes min_cuda(const Tensor& x, int dim, bool keepdim) { return extremes<false>(x, dim, keepdim); }
Tensor argmax_cuda(const Tensor& x, int dim, bool keepdim) { return extremes<true>(x, dim, keepdim).indices; }

// One thread per element of the result, each written once.
template <class T>
__global__ void __launch_bounds__(kThreads) extremes_backward_kernel(int64_t count, int64_t length, int64_t inner,
                                                                     const T* grad, const int64_t* indices, T* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const int64_t slice = i / (length * inner) * inner + i % inner;
  out[i] = indices[slice] == i / inner % length ? grad[slice] : T(0.0F);
}

Tensor extremes_backward_cuda(const Tensor& grad, const Tensor& indices, const Shape& x_sizes, int dim) {
  const ExtremesBackwardPlan plan = prepare_extremes_backward(grad, indices, x_sizes, dim);
  const int64_t count = plan.result.numel();
  visit_floating(grad.dtype(), "max backward", [&]<class T>() {
    cuda::launch({"extremes_backward", cuda::blocks_for(count, kThreads), kThreads}, grad.device(),
                 &extremes_backward_kernel<T>, count, plan.length, plan.inner,
                 static_cast<const T*>(plan.grad.raw_data()), plan.indices.data_ptr<int64_t>(),
                 static_cast<T*>(plan.result.raw_data()));
  });
  return plan.result;
}

const AddKernel add_sum(sum, kCUDA, &sum_cuda);
const AddKernel add_mean(mean, kCUDA, &mean_cuda);
const AddKernel add_max(max, kCUDA, &max_cuda);
const AddKernel add_min(min, kCUDA, &min_cuda);
const AddKernel add_argmax(argmax, kCUDA, &argmax_cuda);
const AddKernel add_extremes_backward(extremes_backward, kCUDA, &extremes_backward_cuda);

}  // namespace
}  // namespace brigade::kernels
