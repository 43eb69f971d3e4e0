// What an all_reduce in shared memory does at least, without a process group's headers, rings and pieces: the limit that
// `brigade bench allreduce --plain-loops` shows beside it.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <vector>

namespace brigade::dist::shm {
class SharedGroup;
}

namespace brigade::lab::bench {

// An all_reduce of one tensor in place: barrier, each rank's share over the memory of all, barrier. What peers cannot reach is
// copied in before and out after, as a whole.
class PlainLoops {
 public:
  // Whether the ranks of a group share memory.
  static bool fit(const dist::ProcessGroup& group);

  // Collective. `group`: one that they fit; `data`: contiguous, on the CPU, as large on all ranks.
  PlainLoops(dist::ProcessGroup& group, const Tensor& data);
  // Collective.
  void run(dist::ReduceOp op) const;

 private:
  dist::shm::SharedGroup* group_;
  Tensor data_;
  Tensor reached_;             // by the peers: the data, or its copy
  std::vector<void*> places_;  // of all ranks' `reached_`
};

}  // namespace brigade::lab::bench
