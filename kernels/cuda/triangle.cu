// CUDA kernels of triangle: copy bits of any dtype, in vectors if rows consist of whole vectors. Elements set to zero
// are not read.
#include <brigade/kernels/elementwise.h>

#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/cuda/detail/map.h>

namespace brigade::kernels {
namespace {

constexpr int kThreads = 256;

// One thread per vector: `vectors` in total, `across` in a row.
template <int length, class Bits>
__global__ void __launch_bounds__(kThreads)
    triangle_kernel(int64_t vectors, int64_t across, TrianglePlan plan, const Bits* x, Bits* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= vectors) return;
  const int64_t row = i / across;
  const int64_t column = (i - row * across) * length;
  const int64_t in_matrix = row % plan.rows;
  const int64_t first = plan.first(in_matrix);
  const int64_t last = plan.last(in_matrix);
  cuda::Vector<Bits, length> values{};
  if (column + length > first && column < last) {
    values = cuda::load_vector<Bits, length>(x + i * length);
#pragma unroll
    for (int k = 0; k < length; ++k)
      values.values[k] = column + k >= first && column + k < last ? values.values[k] : Bits{0};
  }
  cuda::store_vector<Bits, length>(out + i * length, values);
}

template <class Bits>
void run(const TrianglePlan& plan, const Tensor& x, const Tensor& out) {
  constexpr int kLength = cuda::kVectorLength<Bits>;
  const auto* const from = static_cast<const Bits*>(x.raw_data());
  auto* const to = static_cast<Bits*>(out.raw_data());
  const bool whole = plan.columns % kLength == 0 && cuda::is_aligned(from, kLength) && cuda::is_aligned(to, kLength);
  const int64_t length = whole ? kLength : 1;
  const int64_t vectors = x.numel() / length;
  cuda::launch({"triangle", cuda::blocks_for(vectors, kThreads), kThreads}, out.device(),
               whole ? &triangle_kernel<kLength, Bits> : &triangle_kernel<1, Bits>, vectors, plan.columns / length,
               plan, from, to);
}

Tensor triangle_cuda(const Tensor& x, Triangle part, int64_t diagonal) {
  const TrianglePlan plan = plan_triangle(x, part, diagonal);
  const Tensor result = empty(x.sizes(), x.options());
  if (x.numel() == 0) return result;
  const Tensor source = contiguous(x);
  visit_bits(x.dtype(), [&]<class Bits>(Bits) { run<Bits>(plan, source, result); });
  return result;
}

const AddKernel add_triangle(triangle, kCUDA, &triangle_cuda);

}  // namespace
}  // namespace brigade::kernels
