// The stand-in for the CUDA runtime, seen from a test. It has the symbols of libcudart (declared in cuda_runtime_api.h)
// and four devices. What is queued runs lazily, when a call synchronises or asks, in a random order among those that
// streams and events allow; SIMT_SEED or simt::set_options chooses it.
//
// An exception of a kernel discards what is queued on its device and is thrown, as simt::Error, by the next call that
// synchronises with that device or asks it (stream, event and device synchronisation, queries, synchronous copies,
// cudaFree). cudaGetLastError then reports cudaErrorLaunchFailure once; unlike a real device, this one goes on.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

namespace simt {

constexpr int kDevices = 4;

// Queues what a library call would: a stand-in for cuBLAS or NCCL. With `ready`, it runs only once that returns true: a
// collective is ready when all ranks have queued their part, and must never wait inside of `run`. Both are called on
// whichever host thread drains the streams, `ready` under the runtime's lock (it must not call the runtime).
cudaError_t enqueue(cudaStream_t stream, std::function<void()> run, std::function<bool()> ready = {});

// Memory that cudaMalloc can give on a device; 1 GiB until it is set.
void set_device_memory(int device, size_t bytes);

// Bytes that cudaMalloc gave and cudaFree did not take back.
size_t allocated_bytes(int device);

// Copies and fills that are queued, have not begun, and read or write a part of these bytes: who frees memory asks, or
// gives it to somebody else.
struct QueuedCopies {
  size_t reads = 0;
  size_t writes = 0;
};
QueuedCopies queued_copies(const void* address, size_t bytes);

// Calls of cudaEventQuery so far.
size_t event_queries();

// Host threads that have made a call for which the runtime makes a context on this device: cudaSetDevice, or one that
// needs a context while the device is current. On a GPU a context takes some hundred MiB of its memory, in each process.
size_t threads_with_context(int device);

// Streams, events, graphs and allocations that were made and not destroyed: 0 after a test that cleans up.
size_t live_objects();

// Drops all that is queued and every pending failure, forgets captures; allocations and handles stay.
void discard_queued();

}  // namespace simt
