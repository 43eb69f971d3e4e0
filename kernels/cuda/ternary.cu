// CUDA kernels of ternary and lerp: one kernel per dtype and layout; the operation is selected at run time.
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/cuda/detail/map.h>

namespace brigade::kernels {
namespace {

using cuda::kMapThreads;
using cuda::Vector;

// Each thread processes the elements of one 16-byte vector.
template <int length, class T, class F>
__global__ void __launch_bounds__(kMapThreads)
    ternary_kernel(int64_t count, F f, const T* a, const T* b, const T* c, T* out) {
  using C = compute_type<T>;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kMapThreads + threadIdx.x) * length;
  if (first + length <= count) {
    const Vector<T, length> x = cuda::load_vector<T, length>(a + first);
    const Vector<T, length> y = cuda::load_vector<T, length>(b + first);
    const Vector<T, length> z = cuda::load_vector<T, length>(c + first);
    Vector<T, length> result;
#pragma unroll
    for (int k = 0; k < length; ++k) {
      result.values[k] =
          static_cast<T>(f(static_cast<C>(x.values[k]), static_cast<C>(y.values[k]), static_cast<C>(z.values[k])));
    }
    cuda::store_vector<T, length>(out + first, result);
    return;
  }
  for (int64_t i = first; i < count; ++i)
    out[i] = static_cast<T>(f(static_cast<C>(a[i]), static_cast<C>(b[i]), static_cast<C>(c[i])));
}

template <class T, class F>
__global__ void __launch_bounds__(kMapThreads) ternary_strided_kernel(uint32_t count, cuda::DeviceStrides<4> strides,
                                                                      F f, const T* a, const T* b, const T* c, T* out) {
  using C = compute_type<T>;
  for (int u = 0; u < cuda::kStridedItems; ++u) {
    const uint32_t i = (blockIdx.x * cuda::kStridedItems + static_cast<uint32_t>(u)) * kMapThreads + threadIdx.x;
    if (i >= count) return;
    int64_t at[4];
    strides.offsets(i, at);
    out[at[3]] = static_cast<T>(f(static_cast<C>(a[at[0]]), static_cast<C>(b[at[1]]), static_cast<C>(c[at[2]])));
  }
}

template <class T, class F>
void map3(const TernaryOperands& o, F f) {
  const Tensor& out = o.out;
  const T* const a = static_cast<const T*>(o.a.raw_data());
  const T* const b = static_cast<const T*>(o.b.raw_data());
  const T* const c = static_cast<const T*>(o.c.raw_data());
  T* const to = static_cast<T*>(out.raw_data());
  constexpr int kLength = cuda::kVectorLength<T>;
  if (cuda::is_dense(o.a, out) && cuda::is_dense(o.b, out) && cuda::is_dense(o.c, out) &&
      cuda::start_aligned({&o.a, &o.b, &o.c})) {
    cuda::launch({"ternary", cuda::blocks_for(out.numel(), kMapThreads * kLength), kMapThreads}, out.device(),
                 &ternary_kernel<kLength, T, F>, out.numel(), f, a, b, c, to);
    return;
  }
  for (const auto& [strides, count, at] : cuda::strided_parts<4>(out.sizes(), {&o.a, &o.b, &o.c, &out})) {
    cuda::launch({"ternary", cuda::blocks_for(count, kMapThreads * cuda::kStridedItems), kMapThreads}, out.device(),
                 &ternary_strided_kernel<T, F>, count, strides, f, a + at[0], b + at[1], c + at[2], to + at[3]);
  }
}

Tensor ternary_cuda(const Tensor& a, const Tensor& b, const Tensor& c, TernaryOp op, double number) {
  const TernaryOperands o = prepare_ternary(a, b, c, op);
  visit_floating(o.out.dtype(), "ternary", [&]<class T>() {
    using C = compute_type<T>;
    map3<T>(o, Ternary<C>{op, static_cast<C>(number)});
  });
  return o.out;
}

Tensor lerp_cuda(const Tensor& a, const Tensor& b, double weight) {
  const Operands o = prepare_lerp(a, b);
  visit_floating(o.out.dtype(), "lerp", [&]<class T>() {
    using C = compute_type<T>;
    cuda::map2<T, T>("lerp", o.x, o.y, o.out, LerpWith<C>{static_cast<C>(weight)});
  });
  return o.out;
}

const AddKernel add_ternary(ternary, kCUDA, &ternary_cuda);
const AddKernel add_lerp(lerp, kCUDA, &lerp_cuda);

}  // namespace
}  // namespace brigade::kernels
