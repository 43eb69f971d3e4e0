// What a wrapper knows: of each of its parameters, and as statistics.
#pragma once

#include <brigade/core/place.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace brigade::dist {

// --- What a wrapper knows about each of its parameters: which ranks used it, when it was reduced, which optimizers
// hold it, and what last wrote it. Created by explain() (distributed_data_parallel.h).

struct ExplainedParameter {
  std::string name;  // "encoder.0.weight"
  int64_t bytes = 0;
  // "reduced", "reduced, by several wrappers", "ignored", "frozen", "frozen after wrapping", "trainable, unknown to
  // the reducer" (added, unfrozen or replaced after wrapping), "reduced, no longer in the module".
  std::string state;
  bool is_reduced = false;  // by one wrapper or several; also if the module no longer holds it

  // --- In the latest reduced backward (Explanation::backward). Empty if unknown, and for a parameter that is not
  // reduced.
  std::optional<bool> used;                 // by this rank
  std::optional<int> users;                 // how many ranks used it
  std::optional<std::vector<int>> used_by;  // which ranks did
  // Its bucket: buckets are reduced in ascending order, from 0.
  std::optional<uint32_t> bucket;
  // Its position, from 0, in the order in which gradients became ready on this rank; empty if its gradient did not
  // become ready.
  std::optional<uint32_t> ready;

  // --- Over all backwards.
  uint64_t last_used = 0;        // number of the latest reduced backward in which a rank used it; 0: none
  uint32_t local_backwards = 0;  // backwards under no_sync whose gradients are not reduced yet
  Place local_at;                // the latest of them
  // Optimizers of this thread that hold it: "SGD", and "SGD#2" for the second living one.
  std::vector<std::string> optimizers;
  // What last wrote its values: "step of SGD", an operation ("mul_"), "wrapping" (nothing since); "" if unknown:
  // written without a line, on another thread, or without `diagnosis`.
  std::string written_by;
  Place written_at;  // for a write without a line: the latest known location before it
};

struct Explanation {
  std::string title;  // "DDP(Net)"
  int rank = 0;
  int ranks = 1;
  // The latest backward whose buckets all came back: its number, from 1 (0: none), its call, and whether all ranks
  // raised an error at its end.
  uint64_t backward = 0;
  Place backward_at;
  bool failed = false;
  bool broken = false;  // the group has failed since: nothing can be reduced
  // Parameters of the module in registration order, then those that it no longer holds.
  std::vector<ExplainedParameter> parameters;

  // A table with one line per parameter.
  std::string table() const;
  // {"title", "rank", "ranks", "backward", "backward_at": {"file", "line"}, "failed", "broken", "parameters":
  // [{"name", "bytes", "state", ...}]}: the members by name, null if empty.
  std::string json() const;
};

// --- Statistics of a wrapper, under the names of PyTorch's DDP logging data where PyTorch has them.

class DistributedDataParallelBase;

struct LoggingData {
  // world_size, rank, num_parameter_tensors, total_parameter_size_bytes, bucket_cap_bytes,
  // iteration, num_buckets_reduced, unused_parameter_size (bytes, last backward),
  // avg_forward_compute_time ... (ns, over the rounds that are kept)
  std::map<std::string, int64_t> ints;
  // module_name, dtypes, backend_name, bucket_sizes, rebuilt_bucket_sizes,
  // rebuilt_per_bucket_param_indices, prev_iteration_grad_ready_order_indices, comm_hook, ...
  std::map<std::string, std::string> strings;
};

LoggingData logging_data(const DistributedDataParallelBase& ddp);

}  // namespace brigade::dist
