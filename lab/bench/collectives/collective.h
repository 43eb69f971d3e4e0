// The collectives that `brigade bench collectives` measures. Each has its own file, which defines how it is called,
// what it must return, and how its bytes are counted.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/dist/groups/process_group.h>

#include <string>
#include <vector>

namespace brigade::lab::bench {

// The tensors of one call on one rank. In place, they are the same tensor, or the smaller one is this rank's part
// of the larger one.
struct Buffers {
  Tensor input, output;
  bool in_place() const;
};

struct Collective {
  std::string name;
  bool has_data = true;   // barrier has none
  bool reduces = false;   // has an operation
  bool has_root = false;  // rank 0
  // Whether the tensor holds the parts of all ranks. Sizes refer to the larger tensor, as in nccl-tests.
  bool whole_input = true, whole_output = true;
  // busbw / algbw, as nccl-tests defines it (its doc/PERFORMANCE.md): the least traffic on the busiest link of each
  // rank, divided by the size.
  double (*bus_factor)(double ranks) = nullptr;
  // Returns null when the call blocks.
  dist::WorkPtr (*post)(dist::ProcessGroup& group, const Buffers& buffers,
                        const dist::CollectiveOptions& options) = nullptr;
  // Fills the input before the call; the output does not hold the result yet.
  void (*fill)(const Buffers& buffers, int rank, int ranks) = nullptr;
  // Counts the wrong elements of the output after the call.
  int64_t (*wrong)(const Buffers& buffers, dist::ReduceOp op, int rank, int ranks) = nullptr;

  // Elements of the smaller tensor ("count" of nccl-tests) for a size in bytes: at least 1, or 0 without data.
  int64_t count_of(int64_t bytes, DType dtype, int ranks) const;
  // Bytes of the larger tensor for such a count.
  int64_t bytes_of(int64_t count, DType dtype, int ranks) const;
  bool in_parts() const { return whole_input != whole_output; }
};

struct AddCollective {
  explicit AddCollective(Collective collective);
};

// Sorted by name.
const std::vector<Collective>& all_collectives();
// "all_gather, all_reduce, ..."
std::string collective_names();
// Throws ValueError that lists the known ones.
const Collective& find_collective(const std::string& name);

// GB/s (10^9 bytes): size divided by time.
double algorithm_bandwidth(int64_t bytes, double us);

// Shared by several collectives: copies the input to the output unless the call is in place.
void copy_input(const Buffers& buffers);

// --- The values that ranks contribute to a collective in `brigade bench collectives`, and the expected results.
//
// A rank gives 1 everywhere, and 2 where it is its turn. The turns are cyclic, and one position in each cycle belongs
// to no rank. So a rank that is left out, counted twice or taken for another is detected, and every sum is exact in
// every dtype: for up to 64 ranks it is at most 65 (uint8 holds it, and bfloat16 every whole number up to 256). Bools
// are false, and true where it is the rank's turn; their sum is "or". A mean is the sum times 1 / ranks, rounded as the
// group defines it.
//
// `first` is the position of the tensor's first element in these cycles; it is not 0 for a part.

// Fills a contiguous tensor with the contribution of `rank`.
void fill_contribution(const Tensor& tensor, int rank, int ranks, int64_t first = 0);
// The number of elements that differ from `op` over the contributions of all ranks. Sum, Max and Min take all
// dtypes; Avg takes floating ones.
int64_t count_wrong(const Tensor& tensor, dist::ReduceOp op, int ranks, int64_t first = 0);
// The number of elements that differ from the contribution of `rank`.
int64_t count_wrong_copies(const Tensor& tensor, int rank, int ranks, int64_t first = 0);

}  // namespace brigade::lab::bench
