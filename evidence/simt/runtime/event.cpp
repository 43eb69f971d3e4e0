// Events of the CUDA runtime. A recorded event holds the ticket of an empty command.
#include "capture.h"
#include "scheduler.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

using namespace simt::runtime;

struct CUevent_st {
  int device = 0;
  bool alive = true;
  bool timing = true;
  Ticket recorded;  // null: never recorded
  // If recorded on a capturing stream: the graph nodes that it follows.
  std::shared_ptr<Capture> capture;
  std::vector<size_t> nodes;
};

namespace {

// Kept after destruction, so that no other event gets the same handle.
std::vector<std::unique_ptr<CUevent_st>>& events() {
  static auto* const all = new std::vector<std::unique_ptr<CUevent_st>>;
  return *all;
}

std::atomic<size_t> queries{0};

CUevent_st* find_event(cudaEvent_t handle) {
  const auto found = std::find_if(events().begin(), events().end(), [=](const auto& e) { return e.get() == handle; });
  return found == events().end() || !(*found)->alive ? nullptr : found->get();
}

}  // namespace

namespace simt {
size_t event_queries() { return queries; }
}  // namespace simt

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  constexpr unsigned kKnown = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  if (handle == nullptr || (flags & ~kKnown) != 0) return set_last_error(cudaErrorInvalidValue);
  const Lock held = enter();
  events().push_back(std::make_unique<CUevent_st>());
  *handle = events().back().get();
  (*handle)->device = current_device();
  (*handle)->timing = (flags & cudaEventDisableTiming) == 0;
  ++state().live_handles;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* handle) { return cudaEventCreateWithFlags(handle, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  const Lock held = enter();
  CUevent_st* const event = find_event(handle);
  if (event == nullptr) return set_last_error(cudaErrorInvalidResourceHandle);
  event->alive = false;
  --state().live_handles;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  const Lock held = enter();
  CUevent_st* const event = find_event(handle);
  CUstream_st* const stream = find_stream(stream_handle);
  if (event == nullptr || stream == nullptr || event->device != stream->device)
    return set_last_error(cudaErrorInvalidResourceHandle);
  event->capture = stream->capture;
  event->nodes = stream->tail;
  if (stream->capture) return set_last_error(stream->capture->valid ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
  return set_last_error(enqueue(*stream, {}, &event->recorded));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream, unsigned) {
  return cudaEventRecord(handle, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle, unsigned) {
  const Lock held = enter();
  const CUevent_st* const event = find_event(handle);
  CUstream_st* const stream = find_stream(stream_handle);
  if (event == nullptr || stream == nullptr) return set_last_error(cudaErrorInvalidResourceHandle);
  if (event->capture) {
    if (!event->capture->valid) return set_last_error(cudaErrorStreamCaptureInvalidated);
    if (stream->capture && stream->capture != event->capture) {
      event->capture->valid = false;
      return set_last_error(refuse_while_capturing(*stream, cudaErrorStreamCaptureMerge));
    }
    stream->capture = event->capture;
    for (const size_t node : event->nodes) {
      if (std::find(stream->tail.begin(), stream->tail.end(), node) == stream->tail.end()) stream->tail.push_back(node);
    }
    return cudaSuccess;
  }
  if (stream->capture) return set_last_error(refuse_while_capturing(*stream, cudaErrorStreamCaptureIsolation));
  if (!event->recorded) return cudaSuccess;
  return set_last_error(enqueue(*stream, {.after = {event->recorded}}));
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  ++queries;
  Lock held = enter();
  CUevent_st* const event = find_event(handle);
  if (event == nullptr) return set_last_error(cudaErrorInvalidResourceHandle);
  if (event->capture) return set_last_error(cudaErrorCapturedEvent);
  if (const cudaError_t error = check_unsafe_call(); error != cudaSuccess) return set_last_error(error);
  const Ticket recorded = event->recorded;
  const int device = event->device;
  poll(held);
  throw_failure(held, device);
  return recorded && !recorded->done ? set_last_error(cudaErrorNotReady) : cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  Lock held = enter();
  CUevent_st* const event = find_event(handle);
  if (event == nullptr) return set_last_error(cudaErrorInvalidResourceHandle);
  if (event->capture) return set_last_error(cudaErrorCapturedEvent);
  const Ticket recorded = event->recorded;
  const int device = event->device;
  drain_until(held, device, [&] { return !recorded || recorded->done; });
  throw_failure(held, device);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin_handle, cudaEvent_t end_handle) {
  const Lock held = enter();
  const CUevent_st* const begin = find_event(begin_handle);
  const CUevent_st* const end = find_event(end_handle);
  if (milliseconds == nullptr) return set_last_error(cudaErrorInvalidValue);
  if (begin == nullptr || end == nullptr || !begin->timing || !end->timing || !begin->recorded || !end->recorded)
    return set_last_error(cudaErrorInvalidResourceHandle);
  if (!begin->recorded->done || !end->recorded->done) return set_last_error(cudaErrorNotReady);
  *milliseconds = static_cast<float>(end->recorded->milliseconds - begin->recorded->milliseconds);
  return cudaSuccess;
}

}  // extern "C"
