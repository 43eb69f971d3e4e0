// Whether all ranks hold the same bits.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <vector>

namespace brigade::lab {

// Collective; the same answer on every rank. Undefined tensors have to be undefined everywhere.
bool same_on_all_ranks(dist::ProcessGroup& group, const std::vector<Tensor>& tensors);
// The gradients of these parameters, in their order.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters);

}  // namespace brigade::lab
