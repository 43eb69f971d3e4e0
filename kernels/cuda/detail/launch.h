// Kernel launches, on a GPU and in the emulation of evidence/simt, which compiles the same sources.
#pragma once

#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/error.h>
#include <brigade/core/cuda/stream.h>
#include <brigade/core/tensor.h>

#include <source_location>
#include <utility>

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include <simt/device.h>
#include <simt/launch.h>
#include <simt/shared.h>
#endif

namespace brigade::kernels::cuda {

// For 1-d grids: blocks that cover `work` items.
inline unsigned blocks_for(int64_t work, int64_t per_block) {
  return static_cast<unsigned>((work + per_block - 1) / per_block);
}

struct Launch {
  const char* kernel;  // its name, for errors
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;
  std::source_location where = std::source_location::current();
};

// Launches on the current stream of `device`, which need not be the current device. Does nothing for an empty grid.
// Throws CudaError when the launch fails.
template <class... Parameters, class... Arguments>
void launch(const Launch& how, Device device, void (*kernel)(Parameters...), Arguments&&... arguments) {
  if (how.grid.x == 0 || how.grid.y == 0 || how.grid.z == 0) return;
  // The default stream handle refers to the current device.
  const brigade::cuda::DeviceGuard guard(device.index);
  const brigade::cuda::Stream stream = brigade::cuda::current_stream(device.index);
  brigade::cuda::note_launch(how.kernel, how.where);
#ifdef __CUDACC__
  kernel<<<how.grid, how.block, how.shared_bytes, stream.get()>>>(
      static_cast<Parameters>(std::forward<Arguments>(arguments))...);
  brigade::cuda::check(cudaGetLastError(), "the launch of a kernel", how.where);
#else
  simt::launch(how.kernel, kernel, how.grid, how.block, how.shared_bytes, stream.get(),
               static_cast<Parameters>(std::forward<Arguments>(arguments))...);
#endif
}

}  // namespace brigade::kernels::cuda
