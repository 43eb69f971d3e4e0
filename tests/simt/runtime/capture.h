// Capture: while a stream captures, what is queued on it becomes nodes of a graph. Another stream joins by waiting for
// an event that was recorded on a capturing one.
#pragma once

#include "scheduler.h"

#include <thread>

namespace simt::runtime {

struct Node {
  std::function<void()> run;
  std::function<bool()> ready;
  int device = 0;
  std::vector<size_t> after;  // nodes before it in the graph
};

struct Capture {
  std::vector<Node> nodes;
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  unsigned long long id = 0;
  bool valid = true;
};

// The caller holds the lock.

cudaError_t capture_command(CUstream_st& stream, Command command);

// An operation that a capturing stream does not allow breaks the capture.
cudaError_t refuse_while_capturing(CUstream_st& stream, cudaError_t error);

// Calls that may synchronise are refused while a capture forbids them: to all threads (global mode) or to its own.
cudaError_t check_unsafe_call();

}  // namespace simt::runtime
