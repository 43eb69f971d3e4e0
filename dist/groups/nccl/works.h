// Pending collectives of an NCCL group, and the watchdog thread that bounds their duration.
//
// A collective has two halves. On the host the ranks meet: each announces its collective over the host group, which
// detects ranks that mismatch, do not arrive or are gone. On the device NCCL runs the collective, followed by an event.
// wait() waits for the first half, whose errors have explanations, and makes the current stream wait for the second.
// The thread checks for failures that no wait() sees: a device that does not finish, or an asynchronous NCCL error. On
// any failure it aborts NCCL's kernels, so that no wait for the device hangs.
#pragma once

#include <brigade/core/device_runtime.h>
#include <brigade/core/tensor.h>
#include <brigade/dist/groups/nccl/communicator.h>
#include <brigade/dist/groups/work.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace brigade::dist::nccl {

// The delay between an NCCL error and the failure, in which the host group finds the reason.
inline constexpr std::chrono::seconds kReasonsTake{1};

struct Collective {
  std::string words;                   // describes the collective in errors
  std::vector<Tensor> tensors;         // kept alive until the device is done
  WorkPtr met;                         // may be null: nothing to wait for on the host
  std::unique_ptr<DeviceEvent> begun;  // its start on the device, from which the timeout counts
  std::unique_ptr<DeviceEvent> done;   // may be null: nothing to wait for on the device
  bool captured = false;               // into a graph: its events order captured work and cannot be queried
  std::function<void()> on_finish;     // called once, under the lock of the works
};

class Works {
 public:
  // `on_failure` is called once, on the thread that detects a failure; `lost_peer` then returns the peer that the host
  // group knows to be gone, "" for none.
  Works(std::chrono::milliseconds timeout, std::function<void(const std::exception_ptr&)> on_failure,
        std::function<std::string()> lost_peer);
  // Unfinished collectives fail with an error.
  ~Works();
  Works(const Works&) = delete;
  Works& operator=(const Works&) = delete;

  // Starts the thread, which polls this communicator for errors and the device for events.
  void watch(std::shared_ptr<Communicator> communicator, Device device);
  WorkPtr add(Collective collective);
  // The hook for graphs that contain collectives: it tracks each replay as a work that no caller waits for.
  ReplayHook replays(Device device) const;
  // Breaks the group: all pending and later collectives fail with `error`.
  void fail(const std::exception_ptr& error);
  void throw_if_failed() const;
  // Whether the device has no pending work, now or within `time`. False when the device has failed; every other call on
  // it raises that error too.
  bool finish_within(std::chrono::milliseconds time) noexcept;

 private:
  friend class NcclWork;
  struct State;
  struct Entry;

  void run(Device device);

  std::shared_ptr<State> state_;
  const std::function<std::string()> lost_peer_;
  std::thread thread_;
};

}  // namespace brigade::dist::nccl
