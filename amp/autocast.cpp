// Derives the state of a region from that of the enclosing region.
#include <brigade/amp/autocast.h>

#include <brigade/core/place.h>
#include <brigade/core/warning.h>

#include <string>

namespace brigade::amp {
namespace {

using autograd::AutocastState;

const AutocastState& region() noexcept {
  static const AutocastState outside;
  return autograd::detail::autocast_region ? *autograd::detail::autocast_region : outside;
}

AutocastState state_of(DeviceType device, std::optional<DType> dtype, bool enabled, std::optional<bool> cache_enabled,
                       SourceLocation where) {
  AutocastState state = region();
  AutocastState::OnDevice& here = state.on(device);
  here.dtype = dtype.value_or(here.dtype);
  here.enabled = enabled;
  here.where = is_in_standard_library(where) ? SourceLocation() : where;
  if (enabled && !is_half(here.dtype)) {
    here.enabled = false;
    const std::string at = where.line() != 0 ? " at " + to_string(where) : "";
    warn(
        {std::string("In ") + (device == kCPU ? "CPU" : "CUDA") + " autocast" + at +
             ", but the target dtype is not supported. Disabling autocast. It only supports float16 and bfloat16, got " +
             name(here.dtype),
         "pass kBFloat16 or kFloat16; for full precision leave the region out, or pass enabled = false"});
  }
  state.cache_enabled = cache_enabled.value_or(state.cache_enabled);
  state.rule_of = &cast_rule;
  if (!state.cache) state.cache = std::make_shared<autograd::AutocastCache>();
  return state;
}

}  // namespace

autocast::autocast(DeviceType device, std::optional<DType> dtype, bool enabled, std::optional<bool> cache_enabled,
                   SourceLocation where)
    : state_(state_of(device, dtype, enabled, cache_enabled, where)), scope_(state_) {}

bool is_autocast_enabled(DeviceType device) noexcept {
  return autograd::autocast_is_on() && region().on(device).enabled;
}
DType autocast_dtype(DeviceType device) noexcept { return region().on(device).dtype; }
SourceLocation autocast_where(DeviceType device) noexcept { return region().on(device).where; }
bool is_autocast_cache_enabled() noexcept { return region().cache_enabled; }
void clear_autocast_cache() noexcept {
  if (region().cache) region().cache->clear();
}
size_t autocast_cache_size() noexcept { return region().cache ? region().cache->size() : 0; }

}  // namespace brigade::amp
