// The core of the emulated runtime: streams are queues of commands; a command may run when it is first in its queue and
// the tickets that it waits for are done. Nothing runs by itself: a waiting call drains the queues of all devices,
// choosing each time at random among the commands that may run. A program that forgets to wait for an event therefore
// fails soon.
//
// One mutex guards all state; it is released while a command runs, so commands of several host threads run
// concurrently.
#pragma once

#include <cuda_runtime_api.h>
#include <simt/runtime.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

namespace simt::runtime {

// Whether a command is done, and at what host clock time; times are strictly increasing. A recorded event holds one.
struct Completion {
  bool done = false;
  double milliseconds = 0;
};
using Ticket = std::shared_ptr<Completion>;

struct Bytes {
  const void* begin = nullptr;
  size_t count = 0;
};

struct Command {
  std::function<void()> run{};    // may be empty
  std::function<bool()> ready{};  // may be empty
  std::vector<Ticket> after{};
  Ticket ticket{};
  Bytes read{}, written{};  // for a copy or fill
};

struct Capture;

}  // namespace simt::runtime

struct CUstream_st {
  int device = 0;
  bool blocking = true;  // ordered with the device's default stream
  int priority = 0;
  bool busy = false;  // its first command is running
  bool alive = true;  // not destroyed
  unsigned long long id = 0;
  std::deque<simt::runtime::Command> queue;
  simt::runtime::Ticket last;  // of the last enqueued command
  // While capturing: the capture, and the nodes that precede the next one.
  std::shared_ptr<simt::runtime::Capture> capture;
  std::vector<size_t> tail;
};

namespace simt::runtime {

using Lock = std::unique_lock<std::mutex>;
using StreamPtr = std::shared_ptr<CUstream_st>;

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  std::array<StreamPtr, kDevices> default_streams;
  std::array<std::exception_ptr, kDevices> failures;
  std::vector<StreamPtr> active;   // have a valid handle or commands
  std::vector<StreamPtr> retired;  // destroyed, but kept so that no other stream gets the same handle
  std::mt19937_64 random;
  double clock = 0;
  unsigned long long ids = 0;
  size_t live_handles = 0;
};

State& state();
inline Lock lock() { return Lock(state().mutex); }

// The current device of the calling host thread.
int current_device();
// For calls that need a context: creates one on the current device if this thread has none there.
Lock enter();
cudaError_t set_last_error(cudaError_t error);

void seed(uint64_t seed);

// The stream of a handle; nullptr if it does not exist or was destroyed.
CUstream_st* find_stream(cudaStream_t handle);
StreamPtr make_stream(int device, bool blocking, int priority);

// For all functions below, the caller must hold the lock.

// Enqueues or captures a command. `ticket`, if given, receives the command's ticket (null while capturing).
cudaError_t enqueue(CUstream_st& stream, Command command, Ticket* ticket = nullptr);
// Enqueues on a separate queue, ordered only after the tickets that the command waits for.
Ticket enqueue_alone(int device, Command command);

// Runs one command if any may run; returns whether it did.
bool run_one(Lock& lock);
// Runs commands until the condition on this device holds. Throws simt::Error if nothing runs for Options::patience. The
// commands queued on the device are then discarded, as after a failed kernel: they may write to memory of the waiting
// caller, which may be freed once the exception is caught.
void drain_until(Lock& lock, int device, const std::function<bool()>& condition);
void drain_device(Lock& lock, int device);
// A query may or may not advance the queues: a program that polls must terminate, and must not rely on timing.
void poll(Lock& lock);

// Throws the exception of a failed kernel on the device, once, after waiting until nothing runs on the device.
void throw_failure(Lock& lock, int device);

// For detail::launch: the stream must belong to the current device.
cudaError_t enqueue_kernel(cudaStream_t stream, std::function<void()> run);

}  // namespace simt::runtime
