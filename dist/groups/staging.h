// Collectives on tensors of a device, for a group that reduces in the host's memory.
//
// A tensor is copied to page-locked memory on a stream of its own, once what is queued for it has
// run; the group's own collective runs there; the result is copied back on that stream. Nothing
// blocks the caller, and backward goes on beside all three. The steps move on whenever this rank
// asks (progress, Work), in the order of the calls, so that all ranks post the same collectives in
// the same order.
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
  // Ends what is not finished with an error.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Starts the group's collective on the copies in host memory, in the order of `tensors` of
  // stage().
  using Post = std::function<WorkPtr(std::span<const Tensor> on_host)>;

  // `reads` and `writes` say which of the tensors (all on one device) the collective reads and
  // writes. wait() of the Work returns when the result is on its way: what is queued on the current
  // stream from then on sees it.
  WorkPtr stage(std::vector<Tensor> tensors, uint32_t reads, uint32_t writes, Post post);
  // As much as can be done without waiting.
  void progress();
  // Posts what has not been posted, waiting for the device: before a collective that needs no
  // staging.
  void post_all();

 private:
  friend class StagedWork;
  struct Transfer;
  using TransferPtr = std::shared_ptr<Transfer>;

  void post(Transfer& transfer);
  void finish(const TransferPtr& transfer);
  // Of what is back on the device. Nobody has to wait for a work: the last who holds a tensor may let go of it while it is
  // written.
  void let_go();
  void wait_for(const TransferPtr& transfer, const std::chrono::milliseconds* timeout);
  // Where the copies of a device run, and what they wait for.
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
