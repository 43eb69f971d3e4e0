// Captures of CUDA graphs (core/cuda/graph.h) that are underway: what the allocators have to know
// of them.
#pragma once

#include <brigade/core/cuda/allocator.h>
#include <brigade/core/device_runtime.h>

#include <cuda_runtime_api.h>

namespace brigade::cuda::detail {

// As the runtime numbers captures: unique in the process, never 0.
using CaptureId = unsigned long long;
// Of a capture that an error broke: nothing that is queued in it will ever run.
inline constexpr CaptureId kBrokenCapture = ~CaptureId{0};

void capture_began(CaptureId capture, MemPoolId pool);
void capture_ended(CaptureId capture) noexcept;

// The capture that takes what is queued on the stream, and the pool that its memory comes from; 0
// when there is none. An atomic load while no Graph captures.
CaptureId capture_of(cudaStream_t stream);
MemPoolId pool_of(cudaStream_t stream);

// Of the Graph that this thread captures: see DeviceRuntime. Nothing where it captures none.
void on_replay(const void* owner, const ReplayHook& hook);

// To a thread that captures, the runtime forbids calls that may wait for the device. Some of ours
// harm no capture: new memory, and questions about events that were recorded outside. They are
// allowed for a scope.
class AllowUnsafeCalls {
 public:
  AllowUnsafeCalls();
  ~AllowUnsafeCalls();
  AllowUnsafeCalls(const AllowUnsafeCalls&) = delete;
  AllowUnsafeCalls& operator=(const AllowUnsafeCalls&) = delete;

 private:
  bool changed_;
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // to be put back
};

// In the allocators' own rooms, for Graph. A graph retains its pool before its capture begins and
// releases it once no replay can touch its memory any more: with the last one, the pool's segments
// go back to the device, except those where somebody still holds a block; they become ordinary
// memory.
void retain_pool(MemPoolId pool);
void release_pool(MemPoolId pool);
// Page-locked blocks that were noted for this capture may be handed out again.
void release_pinned(CaptureId capture) noexcept;

}  // namespace brigade::cuda::detail
