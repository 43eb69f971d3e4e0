// Copies and fills of the CUDA runtime. All of them, even those of pageable memory, run as late as the documentation
// allows.
#include "capture.h"
#include "memory.h"
#include "scheduler.h"

#include <cstring>

using namespace simt::runtime;

namespace {

bool on_device(const void* address) { return find_memory(address).kind == MemoryKind::Device; }

// A range in device memory must lie within one allocation; host memory is not checked.
bool holds(const void* address, size_t bytes) {
  const Memory memory = find_memory(address);
  return memory.kind != MemoryKind::Device || bytes <= memory.bytes_left;
}

cudaError_t check_copy(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (to == nullptr || from == nullptr || !holds(to, bytes) || !holds(from, bytes)) return cudaErrorInvalidValue;
  if (kind == cudaMemcpyDefault) return cudaSuccess;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const bool pinned_as_device = find_memory(from).kind == MemoryKind::Host || find_memory(to).kind == MemoryKind::Host;
  if (pinned_as_device) return cudaSuccess;  // pinned memory also has a device address
  return to_device == on_device(to) && from_device == on_device(from) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t enqueue_bytes(cudaStream_t handle, Bytes written, Bytes read, std::function<void()> run) {
  CUstream_st* const stream = find_stream(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (written.count == 0) return cudaSuccess;
  return enqueue(*stream, {.run = std::move(run), .read = read, .written = written});
}

cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (const cudaError_t error = bytes == 0 ? cudaSuccess : check_copy(to, from, bytes, kind); error != cudaSuccess)
    return error;
  return enqueue_bytes(stream, {to, bytes}, {from, bytes}, [=] { std::memmove(to, from, bytes); });
}

cudaError_t copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                      cudaMemcpyKind kind, cudaStream_t stream) {
  if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
  if (width == 0 || height == 0) return cudaSuccess;
  cudaError_t error = check_copy(to, from, width, kind);
  if (error == cudaSuccess &&
      (!holds(to, (height - 1) * to_pitch + width) || !holds(from, (height - 1) * from_pitch + width)))
    error = cudaErrorInvalidValue;
  if (error != cudaSuccess) return error;
  const Bytes written{to, (height - 1) * to_pitch + width}, read{from, (height - 1) * from_pitch + width};
  return enqueue_bytes(stream, written, read, [=] {
    for (size_t row = 0; row < height; ++row)
      std::memmove(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
  });
}

cudaError_t fill(void* address, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (find_memory(address).kind == MemoryKind::Unregistered || !holds(address, bytes)) return cudaErrorInvalidValue;
  return enqueue_bytes(stream, {address, bytes}, {}, [=] { std::memset(address, value, bytes); });
}

// Waits until the default stream's last ticket is done, as synchronous calls do.
cudaError_t finish_default_stream(Lock& held, cudaError_t error) {
  if (error != cudaSuccess) return set_last_error(error);
  const int device = current_device();
  const Ticket last = state().default_streams[static_cast<size_t>(device)]->last;
  drain_until(held, device, [&] { return !last || last->done; });
  throw_failure(held, device);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const Lock held = enter();
  return set_last_error(copy(to, from, bytes, kind, stream));
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  const Lock held = enter();
  return set_last_error(copy_rows(to, to_pitch, from, from_pitch, width, height, kind, stream));
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  Lock held = enter();
  if (const cudaError_t error = check_unsafe_call(); error != cudaSuccess) return set_last_error(error);
  const cudaError_t error = copy(to, from, bytes, kind, nullptr);
  // The host does not wait for a copy within devices.
  const bool inside = error == cudaSuccess && on_device(to) && on_device(from);
  return inside ? set_last_error(error) : finish_default_stream(held, error);
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  Lock held = enter();
  if (const cudaError_t error = check_unsafe_call(); error != cudaSuccess) return set_last_error(error);
  return finish_default_stream(held, copy_rows(to, to_pitch, from, from_pitch, width, height, kind, nullptr));
}

cudaError_t cudaMemsetAsync(void* address, int value, size_t bytes, cudaStream_t stream) {
  const Lock held = enter();
  return set_last_error(fill(address, value, bytes, stream));
}

// The host does not wait for the fill.
cudaError_t cudaMemset(void* address, int value, size_t bytes) {
  const Lock held = enter();
  if (const cudaError_t error = check_unsafe_call(); error != cudaSuccess) return set_last_error(error);
  return set_last_error(fill(address, value, bytes, nullptr));
}

}  // extern "C"
