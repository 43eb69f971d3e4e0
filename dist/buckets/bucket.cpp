// Assigns parameters to buckets by size.
#include <brigade/dist/buckets/bucket.h>

#include <algorithm>
#include <map>

namespace brigade::dist {

std::vector<BucketLayout> assign_buckets(std::span<const ParameterInfo> parameters, std::span<const uint32_t> order,
                                         const BucketLimits& limits) {
  struct Open {
    BucketLayout layout;
    int64_t bytes = 0;
    int64_t limit = 0;
    size_t last = 0;  // position in `order` of its latest parameter
  };
  std::vector<Open> closed;
  std::map<std::pair<Device, DType>, Open> open;
  for (size_t position = 0; position < order.size(); ++position) {
    const ParameterInfo& parameter = parameters[order[position]];
    auto [found, fresh] = open.try_emplace({parameter.device, parameter.dtype});
    Open& bucket = found->second;
    if (fresh) bucket.limit = limits.first_bytes;
    bucket.layout.dtype = parameter.dtype;
    bucket.layout.device = parameter.device;
    const int64_t per_line = static_cast<int64_t>(64 / itemsize(parameter.dtype));
    bucket.layout.parameters.push_back(order[position]);
    bucket.layout.offsets.push_back(bucket.layout.gradient_numel);
    bucket.layout.gradient_numel += (parameter.numel + per_line - 1) / per_line * per_line;
    bucket.bytes += parameter.numel * static_cast<int64_t>(itemsize(parameter.dtype));
    bucket.last = position;
    if (bucket.bytes >= bucket.limit) {
      closed.push_back(std::move(bucket));
      bucket = Open{};
      bucket.limit = limits.cap_bytes;
    }
  }
  for (auto& [kind, bucket] : open) {
    if (!bucket.layout.parameters.empty()) closed.push_back(std::move(bucket));
  }
  std::sort(closed.begin(), closed.end(), [](const Open& a, const Open& b) { return a.last < b.last; });
  std::vector<BucketLayout> result;
  for (Open& bucket : closed)
    result.push_back(std::move(bucket.layout));
  return result;
}

}  // namespace brigade::dist
