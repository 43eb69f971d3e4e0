// Issues several collectives of a group together, with one Work for all (PyTorch:
// torch.distributed._coalescing_manager).
//
//   dist::CoalescingManager together(group);
//   for (const Tensor& x : statistics) group->all_reduce(x);
//   together.end()->wait();
//
// On nccl they form one NCCL group: one launch, and the ranks meet once. Other backends post them one by one.
#pragma once

#include <brigade/dist/groups/process_group.h>

namespace brigade::dist {

// While it lives, all_reduce, broadcast, all_gather and reduce_scatter of the group check their arguments, post nothing
// and return at once. All ranks must collect the same calls in the same order; tensors must not be touched until the
// Work of end() is complete. The Work of each call may also be waited for after end(): it completes when all do.
//
// The calls must be of one kind, on tensors of one device that share no memory (otherwise the call throws ValueError or
// DeviceError; PyTorch refuses several kinds too); dtypes, operations and roots may differ. Calls that would wait
// inside the block throw DistError: wait() of a collected call, barrier(), all_gather_text(), new_group(). Ranks whose
// managers have collected different calls get a CollectiveError. Messages (point_to_point.h) are not collected: use
// batch_isend_irecv.
//
// Must be used from one thread.
class CoalescingManager {
 public:
  // Throws ValueError for a null group; DistError on a rank that is not a member, and for a group that already has a
  // manager.
  explicit CoalescingManager(ProcessGroupPtr group, SourceLocation where = SourceLocation::current());
  // Without end(): issues the collected calls and waits, like PyTorch's at the end of its block. When an exception
  // leaves the block, nothing is issued.
  ~CoalescingManager() noexcept(false);
  CoalescingManager(const CoalescingManager&) = delete;
  CoalescingManager& operator=(const CoalescingManager&) = delete;

  // Issues the collected calls; throws as a collective does. A second call returns the same Work. When nothing was
  // collected, the Work is complete.
  WorkPtr end();

 private:
  const ProcessGroupPtr group_;
  const int exceptions_;  // in flight at construction
  std::shared_ptr<Coalescing> coalescing_;
  WorkPtr work_;  // after end()
};

}  // namespace brigade::dist
