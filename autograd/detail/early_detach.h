// Remembers detach() calls made while no tape was on, such as in a module's constructor before a wrapper takes the
// module. They explain why a forward that works with a detached copy does not use the parameter.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <vector>

namespace brigade::autograd::detail {

struct EarlyDetach {
  uint64_t leaf;    // id of a leaf that requires grad
  uint64_t result;  // id of the tensor detached from it or from a value computed from it
  SourceLocation where;
};

// Called while the thread keeps no tape. `source` requires grad; in a long history, some of its leaves are not found.
void note_early_detach(const Tensor& source, const Tensor& result, SourceLocation where);
// The latest detaches of this thread that start at this leaf, oldest first.
std::vector<EarlyDetach> early_detaches(uint64_t leaf);

}  // namespace brigade::autograd::detail
