// What the ranks give to a collective in `brigade bench collectives`, and what must come out.
//
// A rank gives 1 everywhere, and 2 where it is its turn; the turns go round, and one place in each
// round is nobody's. So a rank that is left out, counted twice or taken for another shows, and every
// sum is exact in every dtype: of up to 64 ranks it is at most 65 (uint8 holds it, and bfloat16 every
// whole number up to 256). Bools are false, and true where it is the rank's turn; their sum is "or". A
// mean is the sum times 1 / ranks, rounded as the group defines it.
//
// `first` is the position of a tensor's first element in these turns: that of a part is not 0.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/dist/groups/process_group.h>

namespace brigade::lab::bench {

// Fills a contiguous tensor with what `rank` gives.
void fill_contribution(const Tensor& tensor, int rank, int ranks, int64_t first = 0);
// How many elements are not `op` over the contributions of all ranks. All dtypes for Sum, Max, Min;
// floating ones for Avg.
int64_t count_wrong(const Tensor& tensor, dist::ReduceOp op, int ranks, int64_t first = 0);
// How many elements are not what `rank` gives.
int64_t count_wrong_copies(const Tensor& tensor, int rank, int ranks, int64_t first = 0);

}  // namespace brigade::lab::bench
