// A whole step as one CUDA graph: its kernels and copies are captured once and then launched
// together, which removes the CPU's overhead from small steps.
//
//   for (int i = 0; i < 3; ++i) step();  // warm up: one-time setup must not happen in a capture
//   cuda::Graph graph;
//   graph.capture(step);                 // runs nothing
//   for (...) {
//     copy_(input, batch);               // the tensors that the step reads
//     graph.replay();
//   }
//
// A replay repeats what was captured, at the same addresses and with the same arguments. So:
//
// - New values go into the tensors that the step read when it was captured, and results are read from the tensors that
//   it made. The tensors that it read must stay alive; memory that the step allocated stays reserved while the graph
//   lives (see core/cuda/allocator.h), and the next replay overwrites its results.
// - Shapes, branches and loops of the CPU's code are those of the capture. Nothing may wait for the device: no copy to
//   the CPU, no item(), no printing of values.
// - Random numbers go on: a replay draws what the step itself would have drawn, from the generator of the thread that
//   replays, with its current seed, and advances it as the step would have. Dropout in a backward sees the mask of its
//   forward. Generators other than the thread's own need register_generator().
// - An optimizer's step is captured with the numbers that it computes on the CPU. SGD, Adam and AdamW can keep the
//   learning rate and the count of steps on the device (`.capturable`: schedules reach replays through set_lr());
//   without it SGD can be captured after its first step, at a constant learning rate. A step that a replay cannot
//   repeat is refused: capture forward and backward then, and call step() after each replay. A loss scaler is captured
//   with GradScalerOptions::capturable (amp/grad_scaler.h).
// - Brigade's other work on the CPU (hooks, version counters, the tape, the reducer's checks) runs only once.
//
// Other threads may go on working on the same device during a capture.
#pragma once

#include <brigade/core/cuda/allocator.h>
#include <brigade/core/cuda/stream.h>
#include <brigade/core/device_runtime.h>
#include <brigade/core/random.h>

#include <functional>
#include <memory>
#include <source_location>

namespace brigade::cuda {

namespace detail {
void on_replay(const void* owner, const ReplayHook& hook);
}

// Not thread-safe. Errors of the runtime are CudaError, misuse is DeviceError.
class Graph {
 public:
  Graph();
  // Like reset(), but ignores errors.
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Captures what `step` queues on the current device, on a separate stream that is current during
  // the call. Other streams that wait for its events are captured, too, and it has to wait for them
  // in the end. If `step` throws, the capture ends and the graph is empty. With a pool, the graph
  // shares memory with the graphs captured into it.
  void capture(const std::function<void()>& step, MemPoolId pool = 0);

  // The same in two calls of one thread, on its current stream, which must not be the default stream.
  void capture_begin(MemPoolId pool = 0);
  void capture_end();

  // Launches on the current stream of the graph's device. Replays run one after the other,
  // whichever streams they are on.
  void replay(std::source_location where = std::source_location::current());

  // Back to the state of a new graph: waits for the last replay and frees the memory, except for
  // tensors of the capture that are still held: they stay as they are. Ends a capture that is in
  // progress.
  void reset();

  // The pool of this graph's memory, to be shared with another graph's capture; 0 before a capture.
  MemPoolId pool() const noexcept;
  // Kernels, copies and fills that a replay launches.
  size_t nodes() const noexcept;

  // Called before a capture: replays draw from `generator` as they do from the thread's own. It has
  // to outlive the graph.
  void register_generator(RandomGenerator& generator);

 private:
  friend void detail::on_replay(const void* owner, const ReplayHook& hook);
  void check_may_begin() const;

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace brigade::cuda
