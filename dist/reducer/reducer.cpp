// The reducer's buckets: where gradients live, how they are cut, and cut anew in the order in which they become ready.
// What happens in a backward is in reducer_round.cpp, what is said when it goes wrong in reducer_report.cpp.
#include <brigade/dist/reducer/reducer.h>

#include <brigade/autograd/meta.h>
#include <brigade/autograd/write_log.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace brigade::dist {

Reducer::Reducer(std::vector<NamedParameter> parameters, ProcessGroupPtr group, ReducerOptions options)
    : parameters_(std::move(parameters)), group_(std::move(group)), options_(std::move(options)) {
  const size_t count = parameters_.size();
  planned_.resize(count);
  used_.resize(count);
  expected_.assign(count, 1);
  delayed_.resize(count);
  local_.resize(count);
  last_users_.resize(count);
  for (const uint32_t parameter : options_.delayed)
    delayed_[parameter] = 1;
  for (const NamedParameter& parameter : parameters_) {
    const autograd::AutogradMeta* known = autograd::meta(parameter.tensor);
    const bool managed =
        known && std::any_of(known->observers.begin(), known->observers.end(), [](const auto& observer) {
          return dynamic_cast<const Reducer*>(observer.listener) != nullptr;
        });
    if (!managed) continue;
    throw ValueError(fmt::format(
        "DDP({}): the gradient of `{}` is managed by another wrapper already; destroy that one before wrapping again",
        options_.module_name, parameter.name));
  }
  // The last layers finish first in backward: start from the reverse of the registration order.
  std::vector<uint32_t> order;
  for (auto i = static_cast<uint32_t>(count); i-- > 0;)
    order.push_back(i);
  build(cut(order));
  for (uint32_t i = 0; i < count; ++i)
    autograd::observe(parameters_[i].tensor, *this, i);
}

Reducer::~Reducer() {
  for (const NamedParameter& parameter : parameters_) {
    autograd::stop_observing(parameter.tensor, *this);
    autograd::set_grad_target(parameter.tensor, Tensor());
  }
}

std::vector<BucketLayout> Reducer::cut(std::span<const uint32_t> order) const {
  std::vector<ParameterInfo> infos;
  for (const NamedParameter& parameter : parameters_)
    infos.push_back({parameter.tensor.numel(), parameter.tensor.dtype(), parameter.tensor.device()});
  std::vector<uint32_t> normal;
  std::vector<uint32_t> late;
  for (const uint32_t parameter : order)
    (delayed_[parameter] ? late : normal).push_back(parameter);
  std::vector<BucketLayout> layouts = assign_buckets(infos, normal, options_.limits);
  constexpr int64_t kUnlimited = int64_t{1} << 62;
  for (BucketLayout& layout : assign_buckets(infos, late, {kUnlimited, kUnlimited}))
    layouts.push_back(std::move(layout));
  return layouts;
}

void Reducer::build(std::vector<BucketLayout> layouts) {
  const std::vector<Bucket> old = std::move(buckets_);
  const std::vector<Slot> old_slots = std::move(slots_);
  buckets_.clear();
  slots_.assign(parameters_.size(), {});
  for (BucketLayout& layout : layouts) {
    std::shared_ptr<DeviceStream> reading;
    if (layout.device != Device()) {
      std::shared_ptr<DeviceStream>& known = reading_[layout.device];
      if (!known) known = device_runtime(layout.device).new_stream(layout.device.index);
      reading = known;
    }
    Payload payload(*group_, layout, std::move(reading));
    for (uint32_t index = 0; index < layout.parameters.size(); ++index) {
      const uint32_t parameter = layout.parameters[index];
      const Tensor& leaf = parameters_[parameter].tensor;
      const Tensor view =
          view::as_strided(payload.whole(), leaf.sizes(), contiguous_strides(leaf.sizes()), layout.offsets[index]);
      slots_[parameter] = {static_cast<uint32_t>(buckets_.size()), index, view};
      if (!options_.gradient_as_bucket_view) continue;
      autograd::AutogradMeta& meta = autograd::ensure_meta(leaf);
      if (meta.grad.defined()) {
        kernels::copy(view, meta.grad);
        meta.grad = view;
      }
      autograd::set_grad_target(leaf, view);
    }
    buckets_.emplace_back(std::move(layout), std::move(payload));
  }
  if (hook_) hook_->on_rebuild();
}

std::vector<BucketLayout> Reducer::layout() const {
  std::vector<BucketLayout> layouts;
  for (const Bucket& bucket : buckets_)
    layouts.push_back(bucket.layout);
  return layouts;
}

void Reducer::rebuild() {
  rebuilt_ = true;
  // Rank 0's ready order decides, so that all ranks cut the same buckets. Parameters that were not ready come last.
  std::vector<int64_t> order(ready_order_.begin(), ready_order_.end());
  std::vector<uint8_t> seen(parameters_.size(), 0);
  for (const int64_t parameter : order)
    seen[static_cast<size_t>(parameter)] = 1;
  for (size_t i = parameters_.size(); i-- > 0;) {
    if (!seen[i]) order.push_back(static_cast<int64_t>(i));
  }
  const Tensor shared = group_->allocate(static_cast<int64_t>(order.size()), kInt64);
  std::memcpy(shared.raw_data(), order.data(), order.size() * sizeof(int64_t));
  const std::string description = fmt::format("ready order of DDP({})", options_.module_name);
  group_->broadcast(shared, {.root = 0, .description = description}, backward_where_)->wait();
  std::memcpy(order.data(), shared.raw_data(), order.size() * sizeof(int64_t));
  const std::vector<uint32_t> positions(order.begin(), order.end());
  std::vector<BucketLayout> layouts = cut(positions);
  if (layouts == layout()) return;
  build(std::move(layouts));
  const uint64_t writes = autograd::writes_so_far();
  for (LocalGradient& local : local_)
    local.writes_at_reduction = writes;
}

int64_t Reducer::find(const Tensor& parameter) const noexcept {
  const autograd::AutogradMeta* known = autograd::meta(parameter);
  if (!known) return -1;
  for (const autograd::AutogradMeta::Observer& observer : known->observers) {
    if (observer.listener == this) return observer.tag;
  }
  return -1;
}

void Reducer::expect(std::span<const Tensor> parameters) {
  std::vector<uint8_t> expected(parameters_.size(), 0);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int64_t position = find(parameters[i]);
    if (position < 0) {
      throw ValueError(fmt::format("DDP({}): expect: tensor {} ({}) is not a parameter that this wrapper reduces",
                                   options_.module_name, i, brigade::describe(parameters[i])));
    }
    expected[static_cast<size_t>(position)] = 1;
  }
  expected_ = std::move(expected);
}

void Reducer::expect_all() { std::fill(expected_.begin(), expected_.end(), uint8_t{1}); }

void Reducer::register_comm_hook(CommHookPtr hook) {
  if (!hook) throw ValueError("register_comm_hook: Communication hook must be callable.");
  if (hook_) {
    throw DistError(fmt::format(
        "register_comm_hook or register_builtin_comm_hook can only be called once. DDP({}) has `{}` already",
        options_.module_name, hook_->name()));
  }
  if (round_ > 0)
    throw DistError(
        fmt::format("register_comm_hook: DDP({}) has reduced {} backwards already; register the hook before",
                    options_.module_name, round_));
  hook_ = std::move(hook);
}

bool Reducer::has_heard(uint64_t number) const noexcept {
  return std::find(heard_.begin(), heard_.end(), number) != heard_.end();
}

void Reducer::clear_gradients() {
  for (const NamedParameter& parameter : parameters_) {
    autograd::AutogradMeta& meta = *autograd::meta(parameter.tensor);
    meta.grad = Tensor();
    meta.stamp = {};
  }
  std::fill(used_.begin(), used_.end(), uint8_t{0});
  forward_pending_ = false;
}

}  // namespace brigade::dist
