// Casts inputs by their operation's rule, and caches the casts of weights.
#include <brigade/autograd/autocast_mode.h>

#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/record.h>
#include <brigade/core/view.h>

#include <unordered_map>

namespace brigade::autograd {

AutocastState autocast_now() {
  AutocastState state = detail::autocast_region ? *detail::autocast_region : AutocastState();
  // Inside a listed operation, and in backward, nothing is cast.
  if (!autocast_is_on()) {
    for (AutocastState::OnDevice& device : state.devices)
      device.enabled = false;
  }
  state.cache = nullptr;
  return state;
}

struct AutocastCache::Entries {
  struct Key {
    const TensorImpl* weight;
    DType dtype;
    bool operator==(const Key&) const = default;
  };
  struct HashOfKey {
    size_t operator()(const Key& key) const noexcept {
      return std::hash<const void*>()(key.weight) ^ (static_cast<size_t>(key.dtype) << 1);
    }
  };
  struct Entry {
    Tensor weight;  // kept alive, so that its address stays unique
    Tensor cast;
    Tensor without_history;  // the same under no_grad, once requested
    uint32_t version = 0;    // of the weight, when it was cast
  };
  std::unordered_map<Key, Entry, HashOfKey> casts;
};

AutocastCache::AutocastCache() : entries_(std::make_unique<Entries>()) {}
AutocastCache::~AutocastCache() = default;
size_t AutocastCache::size() const noexcept { return entries_->casts.size(); }
void AutocastCache::clear() noexcept { entries_->casts.clear(); }

namespace {
const char* name_of_cast(DType dtype) {
  return dtype == kFloat16    ? "autocast_to_float16"
         : dtype == kBFloat16 ? "autocast_to_bfloat16"
                              : "autocast_to_float32";
}
}  // namespace

const Tensor& AutocastCache::get(const Tensor& weight, DType dtype, SourceLocation where) {
  Entries::Entry& entry = entries_->casts[{weight.impl(), dtype}];
  const bool usable = entry.cast.defined() && entry.version == weight.version() &&
                      (entry.cast.requires_grad() || !GradMode::is_enabled());
  if (!usable) {
    entry = {weight, detail::autocast_to(weight, dtype, where), Tensor(), weight.version()};
    return entry.cast;
  }
  // The cached cast records no operation on the weight, so report the use here: to input collectors (this is how a
  // checkpoint's first run finds its parameters) and to the tape.
  const Tensor* used[] = {&weight};
  const Tensor* as[] = {&entry.cast};
  const OpInfo cast{.op = name_of_cast(dtype), .where = where};
  if (detail::input_collector) detail::collect(cast, used);
  if (Tape::current()) detail::note(cast, used, as);
  if (GradMode::is_enabled() || !entry.cast.requires_grad()) return entry.cast;
  if (!entry.without_history.defined()) entry.without_history = view::alias(entry.cast);
  return entry.without_history;
}

namespace detail {

Tensor autocast_to(const Tensor& x, DType dtype, SourceLocation where) {
  return cast(name_of_cast(dtype), x, dtype, where);
}

CastRule AutocastOperation::look_up(const AutocastState& state, DeviceType device) noexcept {
  const CastRule rule = state.rule_of(name_, device);
  rules_[static_cast<size_t>(device)].store(static_cast<uint8_t>(rule), std::memory_order_relaxed);
  return rule;
}

namespace {

bool is_eligible(const Tensor& x, DeviceType device) { return may_be_cast(x) && x.device().type == device; }

bool is_weight(const Tensor& x) {
  return x.dtype() == kFloat32 && x.requires_grad() && x.is_leaf() && !x.impl()->view_base;
}

// The common promoted dtype of the inputs that may be cast; `otherwise` if there are none.
DType widest(const Tensor* const* in, size_t count, DeviceType device, DType otherwise) {
  bool found = false;
  DType result = otherwise;
  for (size_t i = 0; i < count; ++i) {
    if (!is_eligible(*in[i], device)) continue;
    result = found ? promote_types(result, in[i]->dtype()) : in[i]->dtype();
    found = true;
  }
  return result;
}

// The first defined input, whose device is the operation's; null if there is none.
const Tensor* first_defined(const Tensor* const* in, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (in[i]->defined()) return in[i];
  return nullptr;
}

// PyTorch's message, and advice for probabilities that do not come from a sigmoid.
[[noreturn]] void refuse(const char* operation, SourceLocation where) {
  throw AutogradError(
      where,
      "{}: torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast. Many models use a "
      "sigmoid layer right before the binary cross entropy layer. In this case, combine the two layers using "
      "binary_cross_entropy_with_logits or BCEWithLogitsLoss, which are safe to autocast; otherwise compute this loss "
      "in float32, in a region with autocast disabled",
      operation);
}

}  // namespace

void CastInputsBase::apply(AutocastOperation& operation, SourceLocation where, const Tensor** in, size_t count) {
  const AutocastState* const state = autocast_state;
  const Tensor* const first = first_defined(in, count);
  if (!first) return;
  const DeviceType device = first->device().type;
  const AutocastState::OnDevice here = state->on(device);
  if (!here.enabled) return;
  const CastRule rule = operation.rule(*state, device);
  if (rule == CastRule::Unlisted) return;
  const DType wanted = rule == CastRule::LowerPrecision ? here.dtype
                       : rule == CastRule::Widest       ? first->dtype()
                                                        : kFloat32;
  // Fast path: usually no input needs a cast.
  bool as_wanted = rule != CastRule::Refused;
  for (size_t i = 0; i < count && as_wanted; ++i)
    as_wanted = !in[i]->defined() || in[i]->dtype() == wanted;
  if (!as_wanted) cast_some(operation, rule, device, where, in, count);
  paused_ = state;
  autocast_state = nullptr;
}

void CastInputsBase::cast_some(const AutocastOperation& operation, CastRule rule, DeviceType device,
                               SourceLocation where, const Tensor** in, size_t count) {
  if (rule == CastRule::Refused) refuse(operation.name(), where);
  if (rule == CastRule::AsIs) return;
  const AutocastState& state = *autocast_state;
  const DType lower = state.on(device).dtype;
  const DType dtype = rule == CastRule::LowerPrecision ? lower
                      : rule == CastRule::Float32      ? kFloat32
                                                       : widest(in, count, device, lower);
  auto casts = std::make_unique<Tensor[]>(count);
  bool any = false;
  for (size_t i = 0; i < count; ++i) {
    const Tensor& input = *in[i];
    if (!is_eligible(input, device) || input.dtype() == dtype) continue;
    if (state.cache_enabled && state.cache && dtype == lower && is_weight(input)) {
      casts[i] = state.cache->get(input, dtype, where);
    } else {
      casts[i] = autocast_to(input, dtype, where);
    }
    in[i] = &casts[i];
    any = true;
  }
  if (any) casts_ = casts.release();
}

void CastInputsBase::drop_casts() noexcept { delete[] casts_; }

}  // namespace detail

CastList::CastList(detail::AutocastOperation& operation, SourceLocation where, const std::vector<Tensor>& inputs) {
  std::vector<const Tensor*> in;
  for (const Tensor& input : inputs)
    in.push_back(&input);
  apply(operation, where, in.data(), in.size());
  for (const Tensor* input : in)
    tensors_.push_back(*input);
}

}  // namespace brigade::autograd
