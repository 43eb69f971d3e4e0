// CUDA kernels of bucket.h. Each block processes a piece of a slot (detail/multi_tensor.h).
#include <brigade/kernels/bucket.h>

#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/bucket.h>
#include <brigade/kernels/cuda/detail/map.h>
#include <brigade/kernels/cuda/detail/multi_measure.h>

#include <cmath>
#include <vector>

namespace brigade::kernels {
namespace {

// Reads array 0 and writes array 1, which may be the same memory. With registers for four blocks per multiprocessor,
// nvcc spills nothing.
template <class From, class To>
__global__ void __launch_bounds__(cuda::kMultiThreads, 4)
    copy_scaled_kernel(cuda::MultiTable<2> table, std::common_type_t<compute_type<From>, compute_type<To>> scale,
                       const From* flags) {
  using C = std::common_type_t<compute_type<From>, compute_type<To>>;
  constexpr int kLength = cuda::kVectorLength<From, To>;
  const cuda::Piece piece = table.piece();
  if (flags && static_cast<C>(static_cast<compute_type<From>>(flags[table.rows_before + piece.row])) == C(0)) return;
  const From* from = table.template at<const From>(0, piece.row);
  To* to = table.template at<To>(1, piece.row);
  const bool vectors = cuda::is_aligned(from, kLength) && cuda::is_aligned(to, kLength);
  cuda::for_vectors<kLength, cuda::kMultiUnroll>(piece, [&](auto count, int64_t at) {
    cuda::Vector<From, kLength> x[count.value];
#pragma unroll
    for (int u = 0; u < count.value; ++u)
      x[u] = cuda::load_padded<kLength>(from, at + u * cuda::kMultiStep<kLength>, piece.end, vectors);
#pragma unroll
    for (int u = 0; u < count.value; ++u) {
      cuda::Vector<To, kLength> y;
#pragma unroll
      for (int k = 0; k < kLength; ++k)
        y.values[k] = static_cast<To>(scale * static_cast<C>(static_cast<compute_type<From>>(x[u].values[k])));
      cuda::store_padded<kLength>(to, at + u * cuda::kMultiStep<kLength>, piece.end, vectors, y);
    }
  });
}

template <class From, class To>
void copy_scaled(const char* name, Device device, std::span<const cuda::MultiRow<2>> rows, double scale,
                 const From* flags) {
  using C = std::common_type_t<compute_type<From>, compute_type<To>>;
  cuda::for_tables<2>(rows, [&](const cuda::MultiTable<2>& table) {
    cuda::launch({name, static_cast<unsigned>(table.pieces), cuda::kMultiThreads}, device,
                 &copy_scaled_kernel<From, To>, table, static_cast<C>(scale), flags);
  });
}

// Pairs the slots of flat (array `flat_at`) with the tensors; an undefined tensor is an empty row, so that rows and
// flags have the same indices.
std::vector<cuda::MultiRow<2>> rows_of(const Tensor& flat, size_t flat_at, std::span<const Tensor> tensors,
                                       std::span<const int64_t> offsets) {
  char* const begin = static_cast<char*>(flat.raw_data());
  std::vector<cuda::MultiRow<2>> rows(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) continue;
    rows[i].data[flat_at] = begin + offsets[i] * static_cast<int64_t>(itemsize(flat.dtype()));
    rows[i].data[1 - flat_at] = tensors[i].raw_data();
    rows[i].numel = tensors[i].numel();
  }
  return rows;
}

void bucket_flatten_cuda(const Tensor& flat, std::span<const Tensor> tensors, std::span<const int64_t> offsets,
                         double scale) {
  const DType dtype = check_bucket("bucket_flatten", flat, Tensor(), tensors, offsets);
  const std::vector<cuda::MultiRow<2>> rows = rows_of(flat, 1, tensors, offsets);
  visit_floating(flat.dtype(), "bucket_flatten", [&]<class To>() {
    visit_floating(dtype, "bucket_flatten",
                   [&]<class From>() { copy_scaled<From, To>("bucket_flatten", flat.device(), rows, scale, nullptr); });
  });
}

void bucket_unflatten_cuda(const Tensor& flat, const Tensor& flags, std::span<const Tensor> tensors,
                           std::span<const int64_t> offsets, double scale) {
  const DType dtype = check_bucket("bucket_unflatten", flat, flags, tensors, offsets);
  const std::vector<cuda::MultiRow<2>> rows = rows_of(flat, 0, tensors, offsets);
  visit_floating(flat.dtype(), "bucket_unflatten", [&]<class From>() {
    const From* flag = data_or_null<const From>(flags);
    visit_floating(dtype, "bucket_unflatten",
                   [&]<class To>() { copy_scaled<From, To>("bucket_unflatten", flat.device(), rows, scale, flag); });
  });
}

void bucket_sums_of_squares_cuda(const Tensor& flat, std::span<const int64_t> offsets, std::span<const int64_t> numels,
                                 const Tensor& sums) {
  check_bucket_sums(flat, offsets, numels, sums);
  visit_floating(flat.dtype(), "bucket_sums_of_squares", [&]<class T>() {
    std::vector<cuda::MultiRow<1>> rows(offsets.size());
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i] = {{static_cast<T*>(flat.raw_data()) + offsets[i]}, numels[i]};
    cuda::measure_rows<T, cuda::SumOfSquares>("bucket_sums_of_squares", flat.device(), rows,
                                              static_cast<double*>(sums.raw_data()));
  });
}

// Runs in a single block.
template <class T>
__global__ void __launch_bounds__(cuda::kMultiThreads)
    words_kernel(const double* sums, int64_t count, bool non_finite, T* words) {
  double total = 0;
  bool bad = non_finite;
  for (int64_t i = threadIdx.x; i < count; i += cuda::kMultiThreads) {
    total += sums[i];
    bad = bad || !std::isfinite(sums[i]);
  }
  bad = __syncthreads_or(bad ? 1 : 0) != 0;
  BRIGADE_SHARED(double, partial, [cuda::kMultiThreads / cuda::kWarp]);
  total = cuda::block_reduce(total, cuda::SumOf{}, &partial[0]);
  if (threadIdx.x == 0) write_bucket_words(total, bad, words);
}

void bucket_words_cuda(const Tensor& words, const Tensor& sums, bool non_finite) {
  check_bucket_words(words, sums);
  visit_floating(words.dtype(), "bucket_words", [&]<class T>() {
    cuda::launch({"bucket_words", 1, cuda::kMultiThreads}, words.device(), &words_kernel<T>,
                 static_cast<const double*>(sums.raw_data()), sums.numel(), non_finite,
                 static_cast<T*>(words.raw_data()));
  });
}

struct SignedSum {
  __device__ static double term(double value, int64_t i) { return value * probe_weight(static_cast<uint64_t>(i)); }
  __device__ double operator()(double a, double b) const { return a + b; }
};

void bucket_probe_cuda(const Tensor& x, const Tensor& out) {
  check_bucket_probe(x, out);
  visit_floating(x.dtype(), "bucket_probe", [&]<class T>() {
    const cuda::MultiRow<1> row{{x.raw_data()}, x.numel()};
    cuda::measure_rows<T, SignedSum>("bucket_probe", x.device(), {&row, 1}, static_cast<double*>(out.raw_data()));
  });
}

const AddKernel add_bucket_flatten(bucket_flatten, kCUDA, &bucket_flatten_cuda);
const AddKernel add_bucket_unflatten(bucket_unflatten, kCUDA, &bucket_unflatten_cuda);
const AddKernel add_bucket_sums_of_squares(bucket_sums_of_squares, kCUDA, &bucket_sums_of_squares_cuda);
const AddKernel add_bucket_words(bucket_words, kCUDA, &bucket_words_cuda);
const AddKernel add_bucket_probe(bucket_probe, kCUDA, &bucket_probe_cuda);

}  // namespace
}  // namespace brigade::kernels
