// Collectives on device tensors, for a group that reduces in host memory.
//
// A tensor is copied to page-locked memory on a separate stream, after the work already queued for it; the group's
// collective runs on the copy; the result is copied back on that stream. Nothing blocks the caller, and backward
// overlaps with all three steps. The steps advance when this rank calls progress() or queries the Work, in the order of
// the calls, so that all ranks post the same collectives in the same order.
#pragma once

#include <brigade/core/device_runtime.h>
#include <brigade/dist/groups/process_group.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace brigade::dist {

class Staging {
 public:
  Staging() = default;
  // Unfinished collectives fail with an error.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Starts the group's collective on the copies in host memory, in the order of `tensors` of
  // stage().
  using Post = std::function<WorkPtr(std::span<const Tensor> on_host)>;

  // `reads` and `writes` are bit masks of the tensors (all on one device) that the collective reads and writes. wait()
  // of the Work returns when the copy back is queued: work queued on the current stream afterwards sees the result.
  WorkPtr stage(std::vector<Tensor> tensors, uint32_t reads, uint32_t writes, Post post);
  // Does as much as possible without blocking.
  void progress();
  // Posts every pending collective, waiting for the device. Called before a collective that needs no staging.
  void post_all();

 private:
  friend class StagedWork;
  struct Transfer;
  using TransferPtr = std::shared_ptr<Transfer>;

  void post(Transfer& transfer);
  void finish(const TransferPtr& transfer);
  // Releases the transfers whose results are back on the device. They keep their tensors alive, since the caller may
  // drop the Work and the tensors while the copy runs.
  void let_go();
  void wait_for(const TransferPtr& transfer, const std::chrono::milliseconds* timeout);
  // The stream of a device's copies, and the event that they wait for.
  struct Side {
    std::unique_ptr<DeviceStream> stream;
    std::unique_ptr<DeviceEvent> ready;
  };
  Side& side_of(Device device);

  std::deque<TransferPtr> waiting_;  // for their copy to the host, oldest first
  std::vector<TransferPtr> posted_;
  std::deque<TransferPtr> returning_;  // to the device, oldest first
  std::map<Device, Side> sides_;
};

}  // namespace brigade::dist
