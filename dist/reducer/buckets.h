// The buckets of a reducer, and the payload slot of each parameter's gradient.
#pragma once

#include <brigade/core/device_runtime.h>
#include <brigade/dist/buckets/payload.h>
#include <brigade/dist/reducer/options.h>

#include <map>
#include <memory>
#include <span>
#include <vector>

namespace brigade::dist {

struct Bucket {
  BucketLayout layout;
  Payload payload;
};

// Where a parameter's gradient is reduced.
struct Slot {
  uint32_t bucket = 0;
  uint32_t index = 0;  // in the bucket
  Tensor view;
};

class Buckets {
 public:
  // `setup` must outlive this object. Cuts the buckets in reverse registration order, since the last layers finish
  // first in backward.
  explicit Buckets(const ReducerSetup& setup);

  uint32_t size() const noexcept { return static_cast<uint32_t>(buckets_.size()); }
  Bucket& operator[](uint32_t index) { return buckets_[index]; }
  const Bucket& operator[](uint32_t index) const { return buckets_[index]; }
  const Slot& slot(uint32_t parameter) const { return slots_[parameter]; }
  // See ReducerOptions::delayed.
  bool is_delayed(uint32_t bucket) const { return delayed_[buckets_[bucket].layout.parameters.front()] != 0; }
  std::vector<BucketLayout> layouts() const;

  // Cuts the buckets again, in the order in which gradients became ready on rank 0, so that all ranks cut alike;
  // parameters that did not become ready come last, in registration order (as in PyTorch). Called once in a reducer's
  // life. Returns whether gradients have moved.
  bool rebuild(std::span<const uint32_t> ready_order, SourceLocation where);
  bool is_rebuilt() const noexcept { return rebuilt_; }

  // Whether work for their device is being captured into a graph, so that nothing may wait for it.
  bool are_captured() const;

 private:
  std::vector<BucketLayout> cut(std::span<const uint32_t> order) const;
  void build(std::vector<BucketLayout> layouts);
  Payload new_payload(const BucketLayout& layout);

  const ReducerSetup& setup_;
  std::vector<uint8_t> delayed_;  // per parameter
  std::vector<Bucket> buckets_;
  std::vector<Slot> slots_;
  std::map<Device, std::shared_ptr<DeviceStream>> reading_;  // per device; see Payload
  bool rebuilt_ = false;
};

}  // namespace brigade::dist
