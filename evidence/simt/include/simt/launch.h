// Launches a kernel on a stream, under nvcc and under the emulation.
#pragma once

#include <cuda_runtime_api.h>

#ifdef __CUDACC__

#include <utility>

namespace simt {

template <class... Parameters, class... Arguments>
void launch(const char* /*name*/, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
            cudaStream_t stream, Arguments&&... arguments) {
  kernel<<<grid, block, shared_bytes, stream>>>(static_cast<Parameters>(std::forward<Arguments>(arguments))...);
}

}  // namespace simt

#else

#include <functional>
#include <type_traits>
#include <utility>

namespace simt {

namespace detail {

struct Launch {
  const char* name;
  const void* kernel;  // the key of cudaFuncSetAttribute
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  std::function<void()> body;  // the code of each thread
};

// Checks the configuration and enqueues the launch.
void launch(Launch&& launch, cudaStream_t stream);

}  // namespace detail

// Enqueues kernel(arguments...) on the stream; it runs when a call synchronizes (see <simt/runtime.h>). `name` appears
// in messages and must stay valid until then. Throws simt::Error at once for a configuration that no device accepts;
// errors inside the kernel are thrown by the synchronizing call.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
            cudaStream_t stream, Arguments&&... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "a kernel's parameters are copied byte by byte");
  static_assert((sizeof(Parameters) + ... + 0) <= 4096, "a kernel's parameters have room for 4 KiB");
  detail::Launch queued{name, reinterpret_cast<const void*>(kernel), grid, block, shared_bytes, {}};
  queued.body = [kernel, ... values = static_cast<Parameters>(std::forward<Arguments>(arguments))] {
    kernel(values...);
  };
  detail::launch(std::move(queued), stream);
}

}  // namespace simt

#endif
