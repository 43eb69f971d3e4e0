// The values that ranks contribute to a collective in `brigade bench collectives`, and the expected results.
//
// A rank gives 1 everywhere, and 2 where it is its turn. The turns are cyclic, and one position in each cycle
// belongs to no rank. So a rank that is left out, counted twice or taken for another is detected, and every sum is
// exact in every dtype: for up to 64 ranks it is at most 65 (uint8 holds it, and bfloat16 every whole number up to
// 256). Bools are false, and true where it is the rank's turn; their sum is "or". A mean is the sum times 1 /
// ranks, rounded as the group defines it.
//
// `first` is the position of the tensor's first element in these cycles; it is not 0 for a part.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/dist/groups/process_group.h>

namespace brigade::lab::bench {

// Fills a contiguous tensor with the contribution of `rank`.
void fill_contribution(const Tensor& tensor, int rank, int ranks, int64_t first = 0);
// The number of elements that differ from `op` over the contributions of all ranks. Sum, Max and Min take all
// dtypes; Avg takes floating ones.
int64_t count_wrong(const Tensor& tensor, dist::ReduceOp op, int ranks, int64_t first = 0);
// The number of elements that differ from the contribution of `rank`.
int64_t count_wrong_copies(const Tensor& tensor, int rank, int ranks, int64_t first = 0);

}  // namespace brigade::lab::bench
