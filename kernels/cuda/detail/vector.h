// Loads and stores of several elements at once, up to 16 bytes.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/kernels/cuda/detail/launch.h>

#include <initializer_list>

namespace brigade::kernels::cuda {

inline constexpr int kVectorBytes = 16;

template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
  T values[N];
};

// `from` and `to` must be aligned to the vector's size; the emulation checks it.
template <class T, int N>
__device__ inline Vector<T, N> load_vector(const T* from) {
#ifdef __CUDACC__
  return *reinterpret_cast<const Vector<T, N>*>(from);
#else
  return simt::load_vector<Vector<T, N>>(from);
#endif
}
template <class T, int N>
__device__ inline void store_vector(T* to, const Vector<T, N>& vector) {
#ifdef __CUDACC__
  *reinterpret_cast<Vector<T, N>*>(to) = vector;
#else
  simt::store_vector(to, vector);
#endif
}

// Whether vectors of `elements` can start at `data`.
template <class T>
BRIGADE_HOST_DEVICE bool is_aligned(const T* data, int elements) {
  return reinterpret_cast<uintptr_t>(data) % (sizeof(T) * static_cast<size_t>(elements)) == 0;
}

// Whether all defined tensors are aligned to 16-byte vectors.
inline bool start_aligned(std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* tensor : tensors) {
    if (tensor->defined() && reinterpret_cast<uintptr_t>(tensor->raw_data()) % kVectorBytes != 0) return false;
  }
  return true;
}

}  // namespace brigade::kernels::cuda
