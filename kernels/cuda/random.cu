// CUDA kernels for random numbers and dropout. They give the CPU's numbers, since element i is a function of the seed,
// the offset, and i. A thread generates one block of the stream: four words, which make four elements, or two of
// float64.
#include <brigade/core/factory.h>
#include <brigade/kernels/activation.h>
#include <brigade/kernels/common/random_numbers.h>
#include <brigade/kernels/cuda/detail/vector.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

namespace brigade::kernels {
namespace {

constexpr int kThreads = 256;

using Words = RandomWords;

template <class T, class F>
__global__ void __launch_bounds__(kThreads) random_kernel(int64_t count, PhiloxState state, F f, T* out) {
  constexpr int kEach = per_block<T>;
  const int64_t block = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (kEach * block >= count) return;
  const Words words = state.now().block(static_cast<uint64_t>(block));
  for (int k = 0; k < kEach && kEach * block + k < count; ++k)
    out[kEach * block + k] = f.template make<T>(words, k);
}

template <class F>
void fill_from_stream(const char* what, const Tensor& out, PhiloxState state, F f) {
  const Tensor target = out.is_contiguous() ? out : empty_like(out);
  const int64_t count = target.numel();
  visit_floating(out.dtype(), what, [&]<class T>() {
    cuda::launch({what, cuda::blocks_for(count, per_block<T> * kThreads), kThreads}, out.device(), &random_kernel<T, F>,
                 count, state, f, static_cast<T*>(target.raw_data()));
  });
  if (!out.is_contiguous()) copy(out, target);
}

void fill_uniform_cuda(const Tensor& out, PhiloxState state, double low, double high) {
  fill_from_stream("fill_uniform", out, state, Uniform{low, high});
}
void fill_normal_cuda(const Tensor& out, PhiloxState state, double mean, double stddev) {
  fill_from_stream("fill_normal", out, state, Normal{mean, stddev});
}

template <class T, bool vectors>
__global__ void __launch_bounds__(kThreads)
    dropout_kernel(int64_t count, PhiloxState state, float threshold, double scale, const T* in, T* out) {
  using C = compute_type<T>;
  const int64_t block = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t first = 4 * block;
  if (first >= count) return;
  const Words words = state.now().block(static_cast<uint64_t>(block));
  const auto value = [&](T x, int k) {
    const bool kept = uniform_from_word(words[static_cast<size_t>(k)]) >= threshold;
    return kept ? static_cast<T>(static_cast<C>(x) * static_cast<C>(scale)) : T(0.0F);
  };
  if (vectors && first + 4 <= count) {
    constexpr int kParts = sizeof(T) * 4 / cuda::kVectorBytes > 1 ? 2 : 1;  // doubles need two vectors
    constexpr int kLength = 4 / kParts;
    for (int part = 0; part < kParts; ++part) {
      const auto x = cuda::load_vector<T, kLength>(in + first + part * kLength);
      cuda::Vector<T, kLength> y;
      for (int k = 0; k < kLength; ++k)
        y.values[k] = value(x.values[k], part * kLength + k);
      cuda::store_vector<T, kLength>(out + first + part * kLength, y);
    }
    return;
  }
  for (int k = 0; k < 4 && first + k < count; ++k)
    out[first + k] = value(in[first + k], k);
}

Tensor dropout_cuda(const Tensor& x, double p, PhiloxState state) {
  check_dropout_probability(p);
  const Tensor source = contiguous(x);
  Tensor result = empty(x.sizes(), x.options());
  const int64_t count = x.numel();
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  visit_floating(x.dtype(), "dropout", [&]<class T>() {
    const T* in = static_cast<const T*>(source.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    const bool vectors = reinterpret_cast<uintptr_t>(in) % cuda::kVectorBytes == 0;
    cuda::launch({"dropout", cuda::blocks_for(count, 4 * kThreads), kThreads}, x.device(),
                 vectors ? &dropout_kernel<T, true> : &dropout_kernel<T, false>, count, state, static_cast<float>(p),
                 scale, in, out);
  });
  return result;
}

const AddKernel add_fill_uniform(fill_uniform, kCUDA, &fill_uniform_cuda);
const AddKernel add_fill_normal(fill_normal, kCUDA, &fill_normal_cuda);
const AddKernel add_dropout(dropout, kCUDA, &dropout_cuda);

}  // namespace
}  // namespace brigade::kernels
