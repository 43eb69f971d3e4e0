// What the ranks give to an all-reduce in `brigade bench allreduce`, and what must come out.
//
// A rank gives 1 everywhere, and 2 where it is its turn; the turns go round, and one place in each
// round is nobody's. So a rank that is left out or counted twice shows, and every sum is exact in
// every dtype: of up to 64 ranks it is at most 65 (uint8 holds it, and bfloat16 every whole number
// up to 256). Bools are false, and true where it is the rank's turn; their sum is "or". A mean is
// the sum times 1 / ranks, rounded as the group defines it.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/dist/groups/process_group.h>

namespace brigade::lab {

// Fills a contiguous tensor with what `rank` gives.
void fill_contribution(const Tensor& tensor, int rank, int ranks);
// How many elements are not `op` over the contributions of all ranks. All dtypes for Sum, Max, Min;
// floating ones for Avg.
int64_t count_wrong(const Tensor& tensor, dist::ReduceOp op, int ranks);

}  // namespace brigade::lab
