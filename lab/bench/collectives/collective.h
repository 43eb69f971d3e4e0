// The collectives that `brigade bench collectives` measures: each one is a file, which says how it is
// called, what must come out, and how its bytes count.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <string>
#include <vector>

namespace brigade::lab::bench {

// Of one call on one rank. In place: the same tensor, or the smaller one is this rank's part of the
// larger one.
struct Buffers {
  Tensor input, output;
  bool in_place() const;
};

struct Collective {
  std::string name;
  bool has_data = true;   // barrier has none
  bool reduces = false;   // has an operation
  bool has_root = false;  // rank 0
  // Whether a tensor has a part for each rank. Sizes count the larger tensor, as nccl-tests does.
  bool whole_input = true, whole_output = true;
  // busbw / algbw, as nccl-tests defines it (doc/PERFORMANCE.md there): what the busiest link of each
  // rank must carry at least, by the size.
  double (*bus_factor)(double ranks) = nullptr;
  // Returns null where it blocks.
  dist::WorkPtr (*post)(dist::ProcessGroup& group, const Buffers& buffers,
                        const dist::CollectiveOptions& options) = nullptr;
  // Before the call; the output has nothing right in it.
  void (*fill)(const Buffers& buffers, int rank, int ranks) = nullptr;
  // Elements of the output that are wrong after it.
  int64_t (*wrong)(const Buffers& buffers, dist::ReduceOp op, int rank, int ranks) = nullptr;

  // Elements of the smaller tensor ("count" of nccl-tests) for a size in bytes: at least 1; 0 where
  // there is no data.
  int64_t count_of(int64_t bytes, DType dtype, int ranks) const;
  // Bytes of the larger tensor for such a count.
  int64_t bytes_of(int64_t count, DType dtype, int ranks) const;
  bool in_parts() const { return whole_input != whole_output; }
};

struct AddCollective {
  explicit AddCollective(Collective collective);
};

// In the order of their names.
const std::vector<Collective>& all_collectives();
// "all_gather, all_reduce, ..."
std::string collective_names();
// Throws ValueError that lists the known ones.
const Collective& find_collective(const std::string& name);

// GB/s (10^9 bytes): the size by the time.
double algorithm_bandwidth(int64_t bytes, double us);

// What several of them share: copies the input where the call works in its output.
void copy_input(const Buffers& buffers);

}  // namespace brigade::lab::bench
