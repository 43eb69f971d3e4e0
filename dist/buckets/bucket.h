// Buckets: lay out the gradients of a model in a few flat buffers that are all-reduced one after another.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace brigade::dist {

// Properties of a parameter that determine the layout.
struct ParameterInfo {
  int64_t numel = 0;
  DType dtype = DType::Float32;
  Device device = {};
};

struct BucketLimits {
  int64_t first_bytes = 1 << 20;  // cap of the first bucket of each kind: small, so that communication starts early
  int64_t cap_bytes = 25 << 20;
};

// One bucket: parameters in the order in which their gradients are expected, each at an offset
// (elements) of the flat buffer.
struct BucketLayout {
  DType dtype = DType::Float32;
  Device device = {};
  std::vector<uint32_t> parameters;
  std::vector<int64_t> offsets;
  int64_t gradient_numel = 0;  // of all slots, padding included

  bool operator==(const BucketLayout&) const = default;
};

// Walks the parameters in `order` with one open bucket per device and dtype; a bucket is closed
// when its bytes reach the limit (so buckets overshoot; a parameter is never split), as PyTorch's
// compute_bucket_assignment_by_size does. Buckets come in the order in which they fill, that is by
// their last parameter in `order`. Slots start on 64-byte boundaries.
std::vector<BucketLayout> assign_buckets(std::span<const ParameterInfo> parameters, std::span<const uint32_t> order,
                                         const BucketLimits& limits);

}  // namespace brigade::dist
