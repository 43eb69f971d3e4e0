// The heart of the stand-in: streams are queues of commands; a command may run when it is the first of its queue and
// the tickets that it waits for are done. Nothing runs by itself: whoever waits drains the queues of all devices, each
// time choosing at random among the commands that may run. So a program that forgot to wait for an event goes wrong
// soon.
//
// One mutex guards everything; it is released while a command runs, and commands of several host threads run side by
// side.
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

// Whether a command is done, and when by the host's clock, each later than the one before. An event is recorded by holding one.
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
  Bytes read{}, written{};  // of a copy or fill
};

struct Capture;

}  // namespace simt::runtime

struct CUstream_st {
  int device = 0;
  bool blocking = true;  // ordered with the device's default stream
  int priority = 0;
  bool busy = false;  // its first command runs
  bool alive = true;  // not destroyed
  unsigned long long id = 0;
  std::deque<simt::runtime::Command> queue;
  simt::runtime::Ticket last;  // of what was queued last
  // While it captures: into what, and the nodes that the next one comes after.
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
  std::vector<StreamPtr> active;   // have a handle or commands
  std::vector<StreamPtr> retired;  // destroyed; kept, so that no other stream gets the handle
  std::mt19937_64 random;
  double clock = 0;
  unsigned long long ids = 0;
  size_t live_handles = 0;
};

State& state();
inline Lock lock() { return Lock(state().mutex); }

// Of the calling host thread.
int current_device();
// For calls that need a context: one is made on the current device, if this thread has none there.
Lock enter();
cudaError_t set_last_error(cudaError_t error);

void seed(uint64_t seed);

// The stream of a handle; nullptr when there is none (any more).
CUstream_st* find_stream(cudaStream_t handle);
StreamPtr make_stream(int device, bool blocking, int priority);

// All below: the caller holds the lock.

// Queues a command, or captures it. The ticket, when asked for, is that of the command (null while capturing).
cudaError_t enqueue(CUstream_st& stream, Command command, Ticket* ticket = nullptr);
// On a queue of its own, in order with nothing but what it waits for.
Ticket enqueue_alone(int device, Command command);

// Runs one command, if any may run.
bool run_one(Lock& lock);
// Runs commands until the condition holds, which is about this device. Throws simt::Error when nothing happens for
// Options::patience; what is queued on the device is lost then, as after a kernel that failed: it may write to memory of
// who waited, and must not do so later, when that is gone.
void drain_until(Lock& lock, int device, const std::function<bool()>& condition);
void drain_device(Lock& lock, int device);
// A query gets on with the work, or not: a program that polls must come to its end, and must not rely on when.
void poll(Lock& lock);

// Throws what a kernel of the device threw, once, when nothing runs on the device any more.
void throw_failure(Lock& lock, int device);

// For detail::launch: the stream must belong to the current device.
cudaError_t enqueue_kernel(cudaStream_t stream, std::function<void()> run);

}  // namespace simt::runtime
