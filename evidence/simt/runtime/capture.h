// Capture: while a stream captures, commands enqueued on it become nodes of a graph. Another stream joins by waiting
// for an event recorded on a capturing stream.
#pragma once

#include "scheduler.h"

#include <thread>

namespace simt::runtime {

struct Node {
  std::function<void()> run;
  std::function<bool()> ready;
  int device = 0;
  std::vector<size_t> after;  // its predecessors in the graph
};

struct Capture {
  std::vector<Node> nodes;
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  unsigned long long id = 0;
  bool valid = true;
};

// The caller must hold the lock.

cudaError_t capture_command(CUstream_st& stream, Command command);

// An operation that is not allowed on a capturing stream invalidates the capture.
cudaError_t refuse_while_capturing(CUstream_st& stream, cudaError_t error);

// Rejects calls that may synchronize while a capture forbids them: to all threads (global mode) or to its own thread.
cudaError_t check_unsafe_call();

}  // namespace simt::runtime
