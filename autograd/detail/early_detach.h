// Cuts that came before the tape: a detach() in the constructor of a module, which a wrapper gets only later. What the thread
// keeps of them says why a parameter is not used by a forward that works with a detached copy.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <vector>

namespace brigade::autograd::detail {

struct EarlyDetach {
  uint64_t leaf;    // id of a leaf that requires grad
  uint64_t result;  // id of what was detached from it, or from what was computed from it
  SourceLocation where;
};

// While the thread keeps no tape. `source` requires grad; of a long history not all leaves are found.
void note_early_detach(const Tensor& source, const Tensor& result, SourceLocation where);
// The latest of this thread that begin at this leaf, oldest first.
std::vector<EarlyDetach> early_detaches(uint64_t leaf);

}  // namespace brigade::autograd::detail
