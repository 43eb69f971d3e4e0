// Collectives of a group that are issued together, with one Work for all (PyTorch:
// torch.distributed._coalescing_manager).
//
//   dist::CoalescingManager together(group);
//   for (const Tensor& x : statistics) group->all_reduce(x);
//   together.end()->wait();
//
// On nccl they are one group of NCCL: one launch, and the ranks meet once. Other backends post each in its turn.
#pragma once

#include <brigade/dist/groups/process_group.h>

namespace brigade::dist {

// While it lives, all_reduce, broadcast, all_gather and reduce_scatter of the group check their arguments, post nothing and
// return at once. All ranks collect the same ones in the same order; tensors must not be touched until the Work of end() is
// complete. What each call returned may be waited for after end() as well: it is complete when all are.
//
// The calls are of one kind, on tensors of one device that share no memory (ValueError, DeviceError at the call; PyTorch
// refuses several kinds too); dtypes, operations and roots may differ. DistError for what waits inside: wait() of such a
// call, barrier(), all_gather_text(), new_group(). Ranks whose managers have collected different ones are told so
// (CollectiveError). Messages (point_to_point.h) are not collected: batch_isend_irecv takes several.
//
// Of one thread.
class CoalescingManager {
 public:
  // Throws ValueError for no group; DistError on a rank that is no member, and for a group that has a manager already.
  explicit CoalescingManager(ProcessGroupPtr group, SourceLocation where = SourceLocation::current());
  // Without end(): issues what was collected, and waits, as PyTorch's at the end of its block. When an exception leaves the
  // block, nothing is issued.
  ~CoalescingManager() noexcept(false);
  CoalescingManager(const CoalescingManager&) = delete;
  CoalescingManager& operator=(const CoalescingManager&) = delete;

  // Issues what was collected; throws as a collective does. Again: the same Work. Of no calls: one that is complete.
  WorkPtr end();

 private:
  const ProcessGroupPtr group_;
  const int exceptions_;  // in flight when it was made
  std::shared_ptr<Coalescing> coalescing_;
  WorkPtr work_;  // after end()
};

}  // namespace brigade::dist
