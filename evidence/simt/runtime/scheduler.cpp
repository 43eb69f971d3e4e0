#include "scheduler.h"

#include <simt/error.h>
#include <simt/options.h>

#include "capture.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace simt::runtime {
namespace {

constexpr double kLeastMilliseconds = 0.001;  // minimum between two commands

bool may_run(const CUstream_st& stream) {
  if (stream.busy || stream.queue.empty()) return false;
  const Command& first = stream.queue.front();
  return std::all_of(first.after.begin(), first.after.end(), [](const Ticket& ticket) { return ticket->done; }) &&
         (!first.ready || first.ready());
}

void complete(const Ticket& ticket) {
  ticket->done = true;
  const double now =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
  state().clock = std::max(state().clock + kLeastMilliseconds, now);
  ticket->milliseconds = state().clock;
}

void forget_when_finished(const StreamPtr& stream) {
  if (!stream->alive && stream->queue.empty() && !stream->busy) std::erase(state().active, stream);
}

bool is_busy(const StreamPtr& stream) { return stream->busy; }

// Drops the commands queued on the device; commands elsewhere that wait for them continue.
void discard(int device) {
  std::vector<StreamPtr> streams = state().active;
  for (const StreamPtr& stream : streams) {
    if (stream->device != device) continue;
    for (const Command& command : stream->queue)
      complete(command.ticket);
    stream->queue.clear();
    forget_when_finished(stream);
  }
}

}  // namespace

State& state() {
  // Never destroyed: allocations and streams of static objects may outlive it.
  static State* const value = [] {
    State* const fresh = new State;
    fresh->random.seed(default_seed());
    for (int device = 0; device < kDevices; ++device) {
      StreamPtr stream = std::make_shared<CUstream_st>();
      stream->device = device;
      stream->id = ++fresh->ids;
      fresh->default_streams[static_cast<size_t>(device)] = stream;
      fresh->active.push_back(stream);
    }
    return fresh;
  }();
  return *value;
}

void seed(uint64_t seed) {
  const Lock held = lock();
  state().random.seed(seed);
}

CUstream_st* find_stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy)
    return state().default_streams[static_cast<size_t>(current_device())].get();
  for (const StreamPtr& stream : state().active) {
    if (stream.get() == handle) return stream->alive ? stream.get() : nullptr;
  }
  return nullptr;
}

StreamPtr make_stream(int device, bool blocking, int priority) {
  StreamPtr stream = std::make_shared<CUstream_st>();
  stream->device = device;
  stream->blocking = blocking;
  stream->priority = priority;
  stream->id = ++state().ids;
  state().active.push_back(stream);
  return stream;
}

cudaError_t enqueue(CUstream_st& stream, Command command, Ticket* ticket) {
  if (stream.capture) return capture_command(stream, std::move(command));
  CUstream_st& default_stream = *state().default_streams[static_cast<size_t>(stream.device)];
  // The default stream waits for all blocking streams, and vice versa.
  if (&stream == &default_stream) {
    for (const StreamPtr& other : state().active) {
      if (other->device != stream.device || !other->blocking || other.get() == &stream) continue;
      if (other->capture) return refuse_while_capturing(*other, cudaErrorStreamCaptureImplicit);
      if (other->last) command.after.push_back(other->last);
    }
  } else if (stream.blocking && default_stream.last) {
    command.after.push_back(default_stream.last);
  }
  command.ticket = stream.last = std::make_shared<Completion>();
  if (ticket != nullptr) *ticket = command.ticket;
  stream.queue.push_back(std::move(command));
  state().changed.notify_all();
  return cudaSuccess;
}

Ticket enqueue_alone(int device, Command command) {
  const StreamPtr stream = make_stream(device, false, 0);
  stream->alive = false;
  Ticket ticket = command.ticket = std::make_shared<Completion>();
  stream->queue.push_back(std::move(command));
  return ticket;
}

bool run_one(Lock& lock) {
  std::vector<StreamPtr> candidates;
  for (const StreamPtr& stream : state().active) {
    if (may_run(*stream)) candidates.push_back(stream);
  }
  if (candidates.empty()) return false;
  const StreamPtr stream = candidates[state().random() % candidates.size()];
  Command command = std::move(stream->queue.front());
  stream->queue.pop_front();
  stream->busy = true;
  std::exception_ptr failure;
  if (command.run) {
    lock.unlock();
    try {
      command.run();
    } catch (...) {
      failure = std::current_exception();
    }
    command.run = nullptr;  // destroying its captures may call the runtime
    lock.lock();
  }
  stream->busy = false;
  complete(command.ticket);
  if (failure) {
    std::exception_ptr& pending = state().failures[static_cast<size_t>(stream->device)];
    if (!pending) pending = failure;
    discard(stream->device);
  }
  forget_when_finished(stream);
  state().changed.notify_all();
  return true;
}

void drain_until(Lock& lock, int device, const std::function<bool()>& condition) {
  using Clock = std::chrono::steady_clock;
  const auto patience = options().patience;
  auto patient_until = Clock::now() + patience;
  while (!condition()) {
    if (run_one(lock)) {
      patient_until = Clock::now() + patience;
      continue;
    }
    // Another host thread may be running a command, or has yet to enqueue its part of a collective.
    if (state().changed.wait_until(lock, patient_until) != std::cv_status::timeout || condition()) continue;
    if (std::ranges::any_of(state().active, is_busy)) {
      patient_until = Clock::now() + patience;
      continue;
    }
    if (run_one(lock)) continue;
    discard(device);
    state().changed.notify_all();
    throw Error("streams stalled: nothing that is queued has been ready to run for " +
                std::to_string(patience.count()) + " ms; what is queued on device " + std::to_string(device) +
                " is lost");
  }
}

void drain_device(Lock& lock, int device) {
  drain_until(lock, device, [device] {
    const std::vector<StreamPtr>& active = state().active;
    return std::all_of(active.begin(), active.end(), [device](const StreamPtr& stream) {
      return stream->device != device || (stream->queue.empty() && !stream->busy);
    });
  });
}

void poll(Lock& lock) {
  if ((state().random() & 1) != 0) run_one(lock);
}

void throw_failure(Lock& lock, int device) {
  const std::exception_ptr failure = std::exchange(state().failures[static_cast<size_t>(device)], nullptr);
  if (!failure) return;
  // A command still running on another host thread may write to memory that is freed once the exception is caught.
  state().changed.wait(lock, [device] {
    return std::ranges::none_of(state().active,
                                [device](const StreamPtr& stream) { return stream->device == device && stream->busy; });
  });
  lock.unlock();
  set_last_error(cudaErrorLaunchFailure);
  std::rethrow_exception(failure);
}

cudaError_t enqueue_kernel(cudaStream_t handle, std::function<void()> run) {
  const Lock held = enter();
  CUstream_st* const stream = find_stream(handle);
  if (stream == nullptr || stream->device != current_device()) return set_last_error(cudaErrorInvalidResourceHandle);
  return set_last_error(enqueue(*stream, {.run = std::move(run)}));
}

}  // namespace simt::runtime

namespace simt {

cudaError_t enqueue(cudaStream_t handle, std::function<void()> run, std::function<bool()> ready) {
  const runtime::Lock held = runtime::lock();
  CUstream_st* const stream = runtime::find_stream(handle);
  if (stream == nullptr) return runtime::set_last_error(cudaErrorInvalidResourceHandle);
  return runtime::set_last_error(runtime::enqueue(*stream, {.run = std::move(run), .ready = std::move(ready)}));
}

QueuedCopies queued_copies(const void* address, size_t bytes) {
  const auto* const begin = static_cast<const char*>(address);
  const auto meets = [&](const runtime::Bytes& other) {
    const auto* const from = static_cast<const char*>(other.begin);
    return other.count > 0 && from < begin + bytes && begin < from + other.count;
  };
  QueuedCopies found;
  const runtime::Lock held = runtime::lock();
  for (const runtime::StreamPtr& stream : runtime::state().active) {
    for (const runtime::Command& command : stream->queue) {
      found.reads += meets(command.read) ? 1 : 0;
      found.writes += meets(command.written) ? 1 : 0;
    }
  }
  return found;
}

void discard_queued() {
  const runtime::Lock held = runtime::lock();
  for (int device = 0; device < kDevices; ++device) {
    runtime::discard(device);
    runtime::state().failures[static_cast<size_t>(device)] = nullptr;
  }
  for (const runtime::StreamPtr& stream : runtime::state().active) {
    stream->capture = nullptr;
    stream->tail.clear();
  }
}

}  // namespace simt
