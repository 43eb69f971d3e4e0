// The test interface of the emulated CUDA runtime. The emulation provides the symbols of libcudart (declared in
// cuda_runtime_api.h) and four devices. Queued commands run lazily, when a call synchronizes or queries, in a random
// order among those that streams and events allow; SIMT_SEED or simt::set_options selects it.
//
// An exception in a kernel discards the commands queued on its device and is thrown, as simt::Error, by the next call
// that synchronizes with or queries that device (stream, event, and device synchronization, queries, synchronous
// copies, cudaFree). cudaGetLastError then reports cudaErrorLaunchFailure once; unlike a real device, this one stays
// usable.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

namespace simt {

constexpr int kDevices = 4;

// Enqueues the work of a library call, for a stand-in of cuBLAS or NCCL. With `ready`, the command runs only once
// `ready` returns true: a collective is ready when all ranks have enqueued their part, and must never wait inside
// `run`. Both are called on the host thread that drains the streams, `ready` under the runtime's lock (it must not call
// the runtime).
cudaError_t enqueue(cudaStream_t stream, std::function<void()> run, std::function<bool()> ready = {});

// Sets the memory that cudaMalloc can allocate on a device; default 1 GiB.
void set_device_memory(int device, size_t bytes);

// Bytes allocated by cudaMalloc and not yet freed.
size_t allocated_bytes(int device);

// The copies and fills that are queued, have not started, and read or write any of these bytes. For code that is about
// to free or reuse memory.
struct QueuedCopies {
  size_t reads = 0;
  size_t writes = 0;
};
QueuedCopies queued_copies(const void* address, size_t bytes);

// The number of cudaEventQuery calls so far.
size_t event_queries();

// The number of host threads that made a call for which the runtime creates a context on this device: cudaSetDevice, or
// a call that needs a context while the device is current. On a GPU, a context takes several hundred MiB of its memory
// in each process.
size_t threads_with_context(int device);

// Streams, events, graphs, and allocations that were created and not destroyed: 0 after a test that cleans up.
size_t live_objects();

// Drops all queued commands and pending failures, and ends captures; allocations and handles stay valid.
void discard_queued();

}  // namespace simt
