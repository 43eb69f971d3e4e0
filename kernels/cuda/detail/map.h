// Elementwise kernels: out[i] = f(a[i]) or f(a[i], b[i]), vectorized for dense memory, strided otherwise.
//
// Elements are computed in the compute_type of their input and rounded once.
#pragma once

#include <brigade/kernels/common/strides.h>
#include <brigade/kernels/cuda/detail/vector.h>

#include <algorithm>
#include <array>
#include <vector>

namespace brigade::kernels::cuda {

inline constexpr int kMapThreads = 256;
// Blocks per multiprocessor: with their vectors in flight, these keep memory busy. By default the compiler aims for
// full occupancy, and spills registers of expensive functions (erf, tanh) to get there.
inline constexpr int kMapBlocks = 4;
inline constexpr int kStridedItems = 4;  // per thread, without vectors
// Vectors in flight per thread: enough to hide memory latency, few enough not to spill.
template <int length>
inline constexpr int kMapVectors = length >= 8 ? 2 : 4;

// Elements per vector when the widest of the types fills 16 bytes.
template <class... T>
inline constexpr int kVectorLength = kVectorBytes / static_cast<int>(std::max({sizeof(T)...}));

// Each block takes a tile of kMapThreads * kMapVectors<length> vectors; a thread's vectors are kMapThreads apart, so
// that the accesses of a warp are coalesced.
template <int length, class A, class Out, class F>
__global__ void __launch_bounds__(kMapThreads, kMapBlocks) map1_kernel(int64_t count, F f, const A* a, Out* out) {
  using C = compute_type<A>;
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * (kMapThreads * kMapVectors<length> * length);
  const int64_t first = tile + static_cast<int64_t>(threadIdx.x) * length;
  if (tile + kMapThreads * kMapVectors<length> * length <= count) {
    Vector<A, length> x[kMapVectors<length>];
#pragma unroll
    for (int u = 0; u < kMapVectors<length>; ++u)
      x[u] = load_vector<A, length>(a + first + u * kMapThreads * length);
#pragma unroll
    for (int u = 0; u < kMapVectors<length>; ++u) {
      Vector<Out, length> y;
#pragma unroll
      for (int k = 0; k < length; ++k)
        y.values[k] = static_cast<Out>(f(static_cast<C>(x[u].values[k])));
      store_vector<Out, length>(out + first + u * kMapThreads * length, y);
    }
    return;
  }
  for (int u = 0; u < kMapVectors<length>; ++u) {
    const int64_t begin = first + u * kMapThreads * length;
    for (int64_t i = begin; i < begin + length && i < count; ++i)
      out[i] = static_cast<Out>(f(static_cast<C>(a[i])));
  }
}

template <int length, class A, class Out, class F>
__global__ void __launch_bounds__(kMapThreads, kMapBlocks)
    map2_kernel(int64_t count, F f, const A* a, const A* b, Out* out) {
  using C = compute_type<A>;
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * (kMapThreads * kMapVectors<length> * length);
  const int64_t first = tile + static_cast<int64_t>(threadIdx.x) * length;
  if (tile + kMapThreads * kMapVectors<length> * length <= count) {
    Vector<A, length> x[kMapVectors<length>];
    Vector<A, length> y[kMapVectors<length>];
#pragma unroll
    for (int u = 0; u < kMapVectors<length>; ++u) {
      x[u] = load_vector<A, length>(a + first + u * kMapThreads * length);
      y[u] = load_vector<A, length>(b + first + u * kMapThreads * length);
    }
#pragma unroll
    for (int u = 0; u < kMapVectors<length>; ++u) {
      Vector<Out, length> z;
#pragma unroll
      for (int k = 0; k < length; ++k)
        z.values[k] = static_cast<Out>(f(static_cast<C>(x[u].values[k]), static_cast<C>(y[u].values[k])));
      store_vector<Out, length>(out + first + u * kMapThreads * length, z);
    }
    return;
  }
  for (int u = 0; u < kMapVectors<length>; ++u) {
    const int64_t begin = first + u * kMapThreads * length;
    for (int64_t i = begin; i < begin + length && i < count; ++i)
      out[i] = static_cast<Out>(f(static_cast<C>(a[i]), static_cast<C>(b[i])));
  }
}

// N operands with a common shape of fewer than 2^31 elements. kMostDims is enough, since each dimension of a layout has
// at least two elements.
template <int N>
struct DeviceStrides {
  static constexpr int kMostDims = 30;

  int dims;
  uint32_t sizes[kMostDims];
  int64_t strides[N][kMostDims];

  __device__ void offsets(uint32_t i, int64_t (&result)[N]) const {
    for (int k = 0; k < N; ++k)
      result[k] = 0;
    for (int d = dims - 1; d >= 0; --d) {
      const uint32_t rest = i / sizes[d];
      const uint32_t at = i - rest * sizes[d];
      i = rest;
      for (int k = 0; k < N; ++k)
        result[k] += at * strides[k][d];
    }
  }
};

template <class A, class Out, class F>
__global__ void __launch_bounds__(kMapThreads)
    map1_strided_kernel(uint32_t count, DeviceStrides<2> strides, F f, const A* a, Out* out) {
  for (int u = 0; u < kStridedItems; ++u) {
    const uint32_t i = (blockIdx.x * kStridedItems + static_cast<uint32_t>(u)) * kMapThreads + threadIdx.x;
    if (i >= count) return;
    int64_t at[2];
    strides.offsets(i, at);
    out[at[1]] = static_cast<Out>(f(static_cast<compute_type<A>>(a[at[0]])));
  }
}

template <class A, class Out, class F>
__global__ void __launch_bounds__(kMapThreads)
    map2_strided_kernel(uint32_t count, DeviceStrides<3> strides, F f, const A* a, const A* b, Out* out) {
  using C = compute_type<A>;
  for (int u = 0; u < kStridedItems; ++u) {
    const uint32_t i = (blockIdx.x * kStridedItems + static_cast<uint32_t>(u)) * kMapThreads + threadIdx.x;
    if (i >= count) return;
    int64_t at[3];
    strides.offsets(i, at);
    out[at[2]] = static_cast<Out>(f(static_cast<C>(a[at[0]]), static_cast<C>(b[at[1]])));
  }
}

// --- on the host

inline bool is_dense(const Tensor& a, const Tensor& out) {
  return a.is_contiguous() && out.is_contiguous() && a.numel() == out.numel();
}

template <int N>
struct StridedPart {
  DeviceStrides<N> strides;
  uint32_t count;
  std::array<int64_t, N> offsets;
};

// Appends the parts of a layout: one, or recursive halves if it has too many elements for 32 bits. Not inlined: it
// would dominate the code of the callers, which are instantiated for each type and function.
template <int N>
[[gnu::noinline]] void append_strided_parts(std::vector<StridedPart<N>>& parts, Shape sizes,
                                            const std::array<Shape, N>& strides, std::array<int64_t, N> offsets) {
  const int64_t count = sizes.numel();
  if (count == 0) return;
  if (count >= (int64_t{1} << 31)) {
    int widest = 0;
    for (int d = 1; d < sizes.size(); ++d)
      widest = sizes[d] > sizes[widest] ? d : widest;
    const int64_t whole = sizes[widest];
    sizes[widest] = whole / 2;
    append_strided_parts<N>(parts, sizes, strides, offsets);
    for (int k = 0; k < N; ++k)
      offsets[static_cast<size_t>(k)] += whole / 2 * strides[static_cast<size_t>(k)][widest];
    sizes[widest] = whole - whole / 2;
    append_strided_parts<N>(parts, sizes, strides, offsets);
    return;
  }
  StridedPart<N>& part = parts.emplace_back();
  part.count = static_cast<uint32_t>(count);
  part.offsets = offsets;
  part.strides.dims = sizes.size();
  for (int d = 0; d < part.strides.dims; ++d) {
    part.strides.sizes[d] = static_cast<uint32_t>(sizes[d]);
    for (int k = 0; k < N; ++k)
      part.strides.strides[k][d] = strides[static_cast<size_t>(k)][d];
  }
}
template <int N>
[[gnu::noinline]] std::vector<StridedPart<N>> strided_parts(const StridedLayout<N>& layout) {
  std::vector<StridedPart<N>> parts;
  append_strided_parts<N>(parts, layout.sizes, layout.strides, {});
  return parts;
}
// The parts of operands that broadcast to `shape`.
template <int N>
[[gnu::noinline]] std::vector<StridedPart<N>> strided_parts(const Shape& shape,
                                                            const std::array<const Tensor*, N>& operands) {
  return strided_parts<N>(StridedLayout<N>(shape, operands));
}

// out = f(a); a broadcasts to the shape of out. Always uses the strided kernel.
template <class A, class Out, class F>
void map1_strided(const char* name, const Tensor& a, const Tensor& out, F f,
                  std::source_location where = std::source_location::current()) {
  const A* x = static_cast<const A*>(a.raw_data());
  Out* y = static_cast<Out*>(out.raw_data());
  for (const StridedPart<2>& part : strided_parts<2>(out.sizes(), {&a, &out})) {
    launch({name, blocks_for(part.count, kMapThreads * kStridedItems), kMapThreads, 0, where}, out.device(),
           &map1_strided_kernel<A, Out, F>, part.count, part.strides, f, x + part.offsets[0], y + part.offsets[1]);
  }
}

// out = f(a) if both are dense and aligned; else returns false without doing anything.
template <class A, class Out, class F>
bool map1_dense(const char* name, const Tensor& a, const Tensor& out, F f,
                std::source_location where = std::source_location::current()) {
  const A* x = static_cast<const A*>(a.raw_data());
  Out* y = static_cast<Out*>(out.raw_data());
  constexpr int kLength = kVectorLength<A, Out>;
  if (!is_dense(a, out) || !is_aligned(x, kLength) || !is_aligned(y, kLength)) return false;
  const int64_t count = out.numel();
  launch({name, blocks_for(count, kMapThreads * kMapVectors<kLength> * kLength), kMapThreads, 0, where}, out.device(),
         &map1_kernel<kLength, A, Out, F>, count, f, x, y);
  return true;
}

// out = f(a); a broadcasts to the shape of out.
template <class A, class Out, class F>
void map1(const char* name, const Tensor& a, const Tensor& out, F f,
          std::source_location where = std::source_location::current()) {
  if (!map1_dense<A, Out>(name, a, out, f, where)) map1_strided<A, Out>(name, a, out, f, where);
}

// out = f(a, b) if all are dense and aligned; else returns false without doing anything.
template <class A, class Out, class F>
bool map2_dense(const char* name, const Tensor& a, const Tensor& b, const Tensor& out, F f,
                std::source_location where = std::source_location::current()) {
  const A* x = static_cast<const A*>(a.raw_data());
  const A* y = static_cast<const A*>(b.raw_data());
  Out* z = static_cast<Out*>(out.raw_data());
  constexpr int kLength = kVectorLength<A, Out>;
  if (!is_dense(a, out) || !is_dense(b, out) || !is_aligned(x, kLength) || !is_aligned(y, kLength) ||
      !is_aligned(z, kLength))
    return false;
  const int64_t count = out.numel();
  launch({name, blocks_for(count, kMapThreads * kMapVectors<kLength> * kLength), kMapThreads, 0, where}, out.device(),
         &map2_kernel<kLength, A, Out, F>, count, f, x, y, z);
  return true;
}

// out = f(a, b); both broadcast to the shape of out. Always uses the strided kernel.
template <class A, class Out, class F>
void map2_strided(const char* name, const Tensor& a, const Tensor& b, const Tensor& out, F f,
                  std::source_location where = std::source_location::current()) {
  const A* x = static_cast<const A*>(a.raw_data());
  const A* y = static_cast<const A*>(b.raw_data());
  Out* z = static_cast<Out*>(out.raw_data());
  for (const StridedPart<3>& part : strided_parts<3>(out.sizes(), {&a, &b, &out})) {
    launch({name, blocks_for(part.count, kMapThreads * kStridedItems), kMapThreads, 0, where}, out.device(),
           &map2_strided_kernel<A, Out, F>, part.count, part.strides, f, x + part.offsets[0], y + part.offsets[1],
           z + part.offsets[2]);
  }
}

// out = f(a, b); both broadcast to the shape of out.
template <class A, class Out, class F>
void map2(const char* name, const Tensor& a, const Tensor& b, const Tensor& out, F f,
          std::source_location where = std::source_location::current()) {
  if (!map2_dense<A, Out>(name, a, b, out, f, where)) map2_strided<A, Out>(name, a, b, out, f, where);
}

}  // namespace brigade::kernels::cuda
