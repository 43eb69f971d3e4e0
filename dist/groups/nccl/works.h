// Collectives of an NCCL group that are under way, and the thread that sees to it that none is for
// ever.
//
// A collective has two halves. On the host the ranks meet: each says what it is about to do, over
// the group of the host, which finds ranks that meet in different ones, that do not come or that
// are gone. On the device NCCL runs it, behind an event. wait() waits for the first half, whose
// errors have words, and lets the current stream wait for the second. The thread asks for what
// nobody waits for: a device that does not come to its end, an error that NCCL reports beside the
// calls. On any failure it ends NCCL's kernels, so that nobody waits for the device in vain.
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

// Between an error of NCCL and the end: the host finds out the reason meanwhile.
inline constexpr std::chrono::seconds kReasonsTake{1};

struct Collective {
  std::string words;                   // the collective in words
  std::vector<Tensor> tensors;         // kept alive until the device is done
  WorkPtr met;                         // may be null: nothing to wait for on the host
  std::unique_ptr<DeviceEvent> begun;  // where it is the device's turn: before that nothing is late
  std::unique_ptr<DeviceEvent> done;   // may be null: nothing to wait for on the device
  bool captured = false;               // into a graph: its events order what is captured, and answer nobody
  std::function<void()> on_finish;     // called once, under the lock of the works
};

class Works {
 public:
  // `on_failure` is called once, on whichever thread finds that something failed; `lost_peer` says
  // then whom the host knows to be gone, "" for nobody.
  Works(std::chrono::milliseconds timeout, std::function<void(const std::exception_ptr&)> on_failure,
        std::function<std::string()> lost_peer);
  // What is not finished ends with an error.
  ~Works();
  Works(const Works&) = delete;
  Works& operator=(const Works&) = delete;

  // From now on the thread asks this one for its errors, and the device about events.
  void watch(std::shared_ptr<Communicator> communicator, Device device);
  WorkPtr add(Collective collective);
  // Of each graph that holds collectives: its replays are works that nobody waits for.
  ReplayHook replays(Device device) const;
  // The group is over: everything that is under way, and all that comes, ends with this.
  void fail(const std::exception_ptr& error);
  void throw_if_failed() const;
  // Whether nothing is left to do on the device, now or within that time. No where the device has
  // failed, whose error every other call of it raises too.
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
