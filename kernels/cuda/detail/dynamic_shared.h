// Dynamic shared memory, for more than the 48 KiB that a kernel can declare statically.
#pragma once

#include <brigade/kernels/cuda/detail/launch.h>

// The block's dynamic shared memory, 16-byte aligned. All kernels declare the same byte array: the compiler forbids one
// name with two types.
#ifdef __CUDACC__
#define BRIGADE_DYNAMIC_SHARED(T, name)                                          \
  extern __shared__ __align__(16) unsigned char brigade_dynamic_shared_memory[]; \
  T* const name = reinterpret_cast<T*>(brigade_dynamic_shared_memory)
#else
#define BRIGADE_DYNAMIC_SHARED(T, name) SIMT_DYNAMIC_SHARED(T, name)
#endif

namespace brigade::kernels::cuda {

// The limit without opting in to more.
inline constexpr size_t kDefaultSharedBytes = size_t{48} << 10;

// As launch(). Throws CudaError if the device has less shared memory per block than requested.
template <class... Parameters, class... Arguments>
void launch_with_shared(const Launch& how, Device device, void (*kernel)(Parameters...), Arguments&&... arguments) {
  if (how.shared_bytes > kDefaultSharedBytes) {
    const brigade::cuda::DeviceGuard guard(device.index);  // the attribute is set per device
    brigade::cuda::check(
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(how.shared_bytes)),
        "cudaFuncSetAttribute", how.where);
  }
  launch(how, device, kernel, std::forward<Arguments>(arguments)...);
}

}  // namespace brigade::kernels::cuda
