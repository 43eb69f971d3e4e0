// CUDA graph captures (core/cuda/graph.h) in progress, as the allocators need to know them.
#pragma once

#include <brigade/core/cuda/allocator.h>
#include <brigade/core/device_runtime.h>

#include <cuda_runtime_api.h>

namespace brigade::cuda::detail {

// As numbered by the runtime: unique in the process, never 0.
using CaptureId = unsigned long long;
// A capture that an error broke: nothing that is queued in it will ever run.
inline constexpr CaptureId kBrokenCapture = ~CaptureId{0};

void capture_began(CaptureId capture, MemPoolId pool);
void capture_ended(CaptureId capture) noexcept;

// The capture that records work queued on the stream, and the pool that its memory comes from; 0 if
// there is none. Costs an atomic load while no Graph captures.
CaptureId capture_of(cudaStream_t stream);
MemPoolId pool_of(cudaStream_t stream);

// Registers `hook` with the Graph that this thread captures: see DeviceRuntime. Does nothing if it captures none.
void on_replay(const void* owner, const ReplayHook& hook);

// RAII: the runtime forbids a capturing thread calls that may wait for the device. Some of
// Brigade's calls are harmless to a capture (new memory, queries of events recorded outside of it):
// they are allowed for a scope.
class AllowUnsafeCalls {
 public:
  AllowUnsafeCalls();
  ~AllowUnsafeCalls();
  AllowUnsafeCalls(const AllowUnsafeCalls&) = delete;
  AllowUnsafeCalls& operator=(const AllowUnsafeCalls&) = delete;

 private:
  bool changed_;
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // to be restored
};

// Implemented by the allocators, for Graph. A graph retains its pool before its capture begins and
// releases it once no replay can touch its memory any more. With the last release, the pool's
// segments go back to the device, except those with a block that is still held, which become
// ordinary memory.
void retain_pool(MemPoolId pool);
void release_pool(MemPoolId pool);
// Allows the reuse of page-locked blocks that were recorded for this capture.
void release_pinned(CaptureId capture) noexcept;

}  // namespace brigade::cuda::detail
