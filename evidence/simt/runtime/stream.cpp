// Streams of the CUDA runtime.
#include "capture.h"
#include "scheduler.h"

#include <algorithm>

using namespace simt::runtime;

namespace {
constexpr int kLowestPriority = 0;
constexpr int kHighestPriority = -5;
}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned flags, int priority) {
  if (handle == nullptr || (flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) != 0)
    return set_last_error(cudaErrorInvalidValue);
  const Lock held = enter();
  *handle = make_stream(current_device(), flags != cudaStreamNonBlocking,
                        std::clamp(priority, kHighestPriority, kLowestPriority))
                .get();
  ++state().live_handles;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  return cudaStreamCreateWithPriority(handle, flags, kLowestPriority);
}

cudaError_t cudaStreamCreate(cudaStream_t* handle) { return cudaStreamCreateWithFlags(handle, cudaStreamDefault); }

// Queued commands still run.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const Lock held = enter();
  CUstream_st* const stream = find_stream(handle);
  if (stream == nullptr || handle == nullptr || handle == cudaStreamLegacy)
    return set_last_error(cudaErrorInvalidResourceHandle);
  if (stream->capture) return set_last_error(refuse_while_capturing(*stream, cudaErrorStreamCaptureUnsupported));
  stream->alive = false;
  --state().live_handles;
  std::vector<StreamPtr>& active = state().active;
  const auto found = std::find_if(active.begin(), active.end(), [=](const StreamPtr& s) { return s.get() == stream; });
  state().retired.push_back(*found);
  if (stream->queue.empty() && !stream->busy) active.erase(found);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  Lock held = enter();
  CUstream_st* const stream = find_stream(handle);
  if (stream == nullptr) return set_last_error(cudaErrorInvalidResourceHandle);
  if (stream->capture) return set_last_error(refuse_while_capturing(*stream, cudaErrorStreamCaptureUnsupported));
  // Commands enqueued by other threads in the meantime are not waited for. The default stream waits as its next command
  // would.
  Ticket now;
  if (const cudaError_t error = enqueue(*stream, {}, &now); error != cudaSuccess) return set_last_error(error);
  const int device = stream->device;
  drain_until(held, device, [&] { return now->done; });
  throw_failure(held, device);
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  Lock held = enter();
  CUstream_st* const stream = find_stream(handle);
  if (stream == nullptr) return set_last_error(cudaErrorInvalidResourceHandle);
  if (stream->capture) return set_last_error(refuse_while_capturing(*stream, cudaErrorStreamCaptureUnsupported));
  const Ticket last = stream->last;
  const int device = stream->device;
  poll(held);
  throw_failure(held, device);
  return last && !last->done ? set_last_error(cudaErrorNotReady) : cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  const Lock held = enter();
  const CUstream_st* const stream = find_stream(handle);
  if (stream == nullptr) return set_last_error(cudaErrorInvalidResourceHandle);
  *flags = stream->blocking ? cudaStreamDefault : cudaStreamNonBlocking;
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  const Lock held = enter();
  const CUstream_st* const stream = find_stream(handle);
  if (stream == nullptr) return set_last_error(cudaErrorInvalidResourceHandle);
  *priority = stream->priority;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  if (lowest != nullptr) *lowest = kLowestPriority;
  if (highest != nullptr) *highest = kHighestPriority;
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  const Lock held = enter();
  CUstream_st* const stream = find_stream(handle);
  if (stream == nullptr) return set_last_error(cudaErrorInvalidResourceHandle);
  if (function == nullptr) return set_last_error(cudaErrorInvalidValue);
  return set_last_error(enqueue(*stream, {.run = [=] { function(data); }}));
}

cudaError_t cudaDeviceSynchronize() {
  Lock held = enter();
  if (const cudaError_t error = check_unsafe_call(); error != cudaSuccess) return set_last_error(error);
  const int device = current_device();
  drain_device(held, device);
  throw_failure(held, device);
  return cudaSuccess;
}

}  // extern "C"
