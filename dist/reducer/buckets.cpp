// Cuts buckets, and moves gradients into their slots.
#include <brigade/dist/reducer/buckets.h>

#include <brigade/autograd/listener.h>
#include <brigade/autograd/meta.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace brigade::dist {

Buckets::Buckets(const ReducerSetup& setup) : setup_(setup), delayed_(setup.count(), 0) {
  for (const uint32_t parameter : setup_.options.delayed)
    delayed_[parameter] = 1;
  std::vector<uint32_t> order;
  for (auto i = static_cast<uint32_t>(setup_.count()); i-- > 0;)
    order.push_back(i);
  build(cut(order));
}

std::vector<BucketLayout> Buckets::cut(std::span<const uint32_t> order) const {
  std::vector<ParameterInfo> infos;
  for (const NamedParameter& parameter : setup_.parameters)
    infos.push_back({parameter.tensor.numel(), parameter.tensor.dtype(), parameter.tensor.device()});
  std::vector<uint32_t> normal;
  std::vector<uint32_t> late;
  for (const uint32_t parameter : order)
    (delayed_[parameter] ? late : normal).push_back(parameter);
  std::vector<BucketLayout> layouts = assign_buckets(infos, normal, setup_.options.limits);
  constexpr int64_t kUnlimited = int64_t{1} << 62;
  for (BucketLayout& layout : assign_buckets(infos, late, {kUnlimited, kUnlimited}))
    layouts.push_back(std::move(layout));
  return layouts;
}

Payload Buckets::new_payload(const BucketLayout& layout) {
  std::shared_ptr<DeviceStream> reading;
  if (layout.device != Device()) {
    std::shared_ptr<DeviceStream>& known = reading_[layout.device];
    if (!known) known = device_runtime(layout.device).new_stream(layout.device.index);
    reading = known;
  }
  return Payload(*setup_.group, layout, setup_.registered, std::move(reading), setup_.options.meter != nullptr);
}

void Buckets::build(std::vector<BucketLayout> layouts) {
  // Keep the old buckets alive until the end: gradients are copied out of them.
  const std::vector<Bucket> old = std::exchange(buckets_, {});
  const std::vector<Slot> old_slots = std::exchange(slots_, std::vector<Slot>(setup_.count()));
  for (BucketLayout& layout : layouts) {
    Payload payload = new_payload(layout);
    for (uint32_t index = 0; index < layout.parameters.size(); ++index) {
      const uint32_t parameter = layout.parameters[index];
      const Tensor& leaf = setup_.parameters[parameter].tensor;
      const Tensor view =
          view::as_strided(payload.whole(), leaf.sizes(), contiguous_strides(leaf.sizes()), layout.offsets[index]);
      slots_[parameter] = {size(), index, view};
      if (!setup_.options.gradient_as_bucket_view || setup_.is_elsewhere(parameter)) continue;
      autograd::set_grad_target(leaf, view);
      autograd::ensure_meta(leaf).adopt_target();
    }
    buckets_.push_back({std::move(layout), std::move(payload)});
  }
  if (setup_.hook) setup_.hook->on_rebuild();
  if (setup_.options.meter) setup_.options.meter->on_build(*this);
}

std::vector<BucketLayout> Buckets::layouts() const {
  std::vector<BucketLayout> layouts;
  for (const Bucket& bucket : buckets_)
    layouts.push_back(bucket.layout);
  return layouts;
}

bool Buckets::are_captured() const {
  return std::ranges::any_of(reading_, [](const auto& each) {
    const Device device = each.first;
    return device_runtime(device).is_capturing(device.index);
  });
}

bool Buckets::rebuild(std::span<const uint32_t> ready_order, SourceLocation where) {
  rebuilt_ = true;
  std::vector<int64_t> order(ready_order.begin(), ready_order.end());
  std::vector<uint8_t> seen(setup_.count(), 0);
  for (const int64_t parameter : order)
    seen[static_cast<size_t>(parameter)] = 1;
  for (size_t i = 0; i < setup_.count(); ++i) {
    if (!seen[i]) order.push_back(static_cast<int64_t>(i));
  }
  const Tensor shared = setup_.group->allocate(static_cast<int64_t>(order.size()), kInt64);
  std::memcpy(shared.raw_data(), order.data(), order.size() * sizeof(int64_t));
  setup_.group->broadcast(shared, {.root = 0, .topic = setup_.topic(Phase::Backward, "ready order")}, where)->wait();
  std::memcpy(order.data(), shared.raw_data(), order.size() * sizeof(int64_t));
  if (setup_.options.meter) setup_.options.meter->on_rebuild(*this);
  std::vector<BucketLayout> fresh = cut(std::vector<uint32_t>(order.begin(), order.end()));
  if (fresh == layouts()) return false;
  build(std::move(fresh));
  return true;
}

}  // namespace brigade::dist
