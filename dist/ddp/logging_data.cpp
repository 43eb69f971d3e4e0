// Reads sizes, options, buckets and the times of recent backwards from the wrapper.
#include <brigade/dist/ddp/explanation.h>

#include <brigade/dist/ddp/distributed_data_parallel.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <set>

namespace brigade::dist {
namespace {

void add_parameters(const Reducer& reducer, LoggingData& data) {
  data.ints["num_parameter_tensors"] = static_cast<int64_t>(reducer.parameters().size());
  std::set<std::string> dtypes;
  int64_t bytes = 0;
  int64_t unused = 0;
  for (size_t i = 0; i < reducer.parameters().size(); ++i) {
    const Tensor& tensor = reducer.parameters()[i].tensor;
    dtypes.insert(name(tensor.dtype()));
    bytes += static_cast<int64_t>(tensor.nbytes());
    if (reducer.past().rounds > 0 && reducer.past().users[i] == 0) unused += static_cast<int64_t>(tensor.nbytes());
  }
  data.ints["total_parameter_size_bytes"] = bytes;
  data.ints["unused_parameter_size"] = unused;
  data.strings["dtypes"] = fmt::format("{}", fmt::join(dtypes, ", "));
}

void add_options(const DDPOptions& options, LoggingData& data) {
  auto& ints = data.ints;
  ints["bucket_cap_bytes"] = static_cast<int64_t>(options.bucket_cap_mb * 1024 * 1024);
  ints["first_bucket_bytes"] = static_cast<int64_t>(options.first_bucket_mb * 1024 * 1024);
  ints["broadcast_buffers"] = options.broadcast_buffers;
  ints["find_unused_parameters"] = options.find_unused_parameters;
  ints["gradient_as_bucket_view"] = options.gradient_as_bucket_view;
  ints["static_graph"] = options.static_graph;
  ints["is_multi_device_module"] = 0;
}

void add_reducer(const Reducer& reducer, LoggingData& data) {
  auto& ints = data.ints;
  auto& strings = data.strings;
  ints["iteration"] = static_cast<int64_t>(reducer.past().rounds);
  ints["num_collectives"] = static_cast<int64_t>(reducer.past().collectives);
  ints["has_rebuilt_buckets"] = reducer.buckets().is_rebuilt();
  strings["module_name"] = reducer.options().module_name;
  strings["comm_hook"] = reducer.setup().hook ? reducer.setup().hook->name() : "";
  std::string sizes;
  std::string indices;
  for (const BucketLayout& layout : reducer.buckets().layouts()) {
    int64_t bucket = 0;
    for (const uint32_t parameter : layout.parameters)
      bucket += static_cast<int64_t>(reducer.parameters()[parameter].tensor.nbytes());
    sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", bucket);
    indices += fmt::format("{}{}", indices.empty() ? "" : ", ", fmt::join(layout.parameters, " "));
  }
  ints["num_buckets_reduced"] = static_cast<int64_t>(reducer.buckets().layouts().size());
  strings["bucket_sizes"] = sizes;
  if (reducer.buckets().is_rebuilt()) {
    strings["rebuilt_bucket_sizes"] = sizes;
    strings["rebuilt_per_bucket_param_indices"] = indices;
  }
  strings["prev_iteration_grad_ready_order_indices"] = fmt::format("{}", fmt::join(reducer.past().ready_order, ", "));
}

// The times of the last backward, and the means over those in the timeline.
void add_times(const Timeline& timeline, LoggingData& data) {
  int64_t count = 0;
  std::map<std::string, int64_t> sums;
  for (const RoundEvents& round : timeline.rounds()) {
    std::map<std::string, int64_t> times;
    if (round.forward_began > 0) times["forward_compute_time"] = round.began - round.forward_began;
    times["backward_compute_time"] = round.compute_ended - round.began;
    times["backward_comm_time"] = round.communication();
    times["backward_compute_comm_overlap_time"] = round.hidden();
    for (const auto& [key, value] : times) {
      sums[key] += value;
      data.ints["last_" + key] = value;
    }
    ++count;
  }
  for (const auto& [key, sum] : sums)
    data.ints["avg_" + key] = sum / count;
}

}  // namespace

LoggingData logging_data(const DistributedDataParallelBase& ddp) {
  LoggingData data;
  data.ints["world_size"] = ddp.group().size();
  data.ints["rank"] = ddp.group().rank();
  data.strings["backend_name"] = ddp.group().backend();
  if (const char* address = std::getenv("MASTER_ADDR")) data.strings["master_addr"] = address;
  if (const char* port = std::getenv("MASTER_PORT")) data.strings["master_port"] = port;
  add_parameters(ddp.reducer(), data);
  add_options(ddp.options(), data);
  add_reducer(ddp.reducer(), data);
  add_times(ddp.timeline(), data);
  return data;
}

}  // namespace brigade::dist
