// The minimal all_reduce in shared memory, without a process group's headers, rings and pieces: the limit that
// `brigade bench allreduce --plain-loops` reports.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <vector>

namespace brigade::dist::shm {
class SharedGroup;
}

namespace brigade::lab::bench {

// An in-place all_reduce of one tensor: barrier, reduce this rank's share over the memory of all ranks, barrier.
// Data that the peers cannot reach is copied in before and out after, as a whole.
class PlainLoops {
 public:
  // Whether the ranks of a group share memory.
  static bool fit(const dist::ProcessGroup& group);

  // Collective. `group` must pass fit(); `data` is contiguous, on the CPU, and of equal size on all ranks.
  PlainLoops(dist::ProcessGroup& group, const Tensor& data);
  // Collective.
  void run(dist::ReduceOp op) const;

 private:
  dist::shm::SharedGroup* group_;
  Tensor data_;
  Tensor reached_;             // reachable by the peers: the data, or its copy
  std::vector<void*> places_;  // of all ranks' `reached_`
};

}  // namespace brigade::lab::bench
