// Statistics of a wrapper, under the names of PyTorch's DDP logging data where PyTorch has them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace brigade::dist {

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
