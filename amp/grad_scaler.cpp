// The scaler's scale: created, applied, reported, saved and loaded. The order of a scaler's calls
// in an iteration is in grad_scaler_steps.cpp.
#include <brigade/amp/grad_scaler.h>

#include <brigade/amp/detail/device_scale.h>
#include <brigade/core/device_runtime.h>
#include <brigade/core/warning.h>
#include <brigade/kernels/factory.h>

#include <array>
#include <map>

namespace brigade::amp {

using autograd::ScalerError;

GradScaler::GradScaler(const GradScalerOptions& options)
    : options_(options), enabled_(options.enabled), init_scale_(options.init_scale) {
  if (enabled_ && options.device != kCPU && device_count(options.device) == 0) {
    enabled_ = false;
    warn({"GradScaler is enabled, but " + std::string(options.device == kCUDA ? "CUDA" : name(options.device)) +
              " is not available.  Disabling.",
          "give the device that the model is on, or enabled = false"});
  }
  if (!enabled_) return;
  // Written so that a NaN does not pass.
  if (!(options.growth_factor > 1)) throw ValueError("The growth factor must be > 1.0. Got {}", options.growth_factor);
  if (!(options.backoff_factor < 1))
    throw ValueError("The backoff factor must be < 1.0. Got {}", options.backoff_factor);
  number_ = autograd::begin_scaler(options.fused_step);
}

GradScaler::~GradScaler() {
  if (enabled_) autograd::end_scaler(options_.fused_step);
}

void GradScaler::place_on(Device device, SourceLocation where) {
  if (on_device_) {
    if (on_device_->device() == device) return;
    throw ScalerError(where,
                      "GradScaler.scale() with .capturable = true: expected a loss on {}, where the scale is, got one "
                      "on {}. Use a scaler for each device, or one without .capturable",
                      on_device_->device(), device);
  }
  if (device.type != kCPU && device_runtime(device).is_capturing(device.index)) {
    throw ScalerError(where,
                      "GradScaler.scale() is first called while a graph is captured: each replay would begin with the "
                      "initial scale. Take at least one step outside of the capture before it");
  }
  on_device_ = std::make_unique<detail::DeviceScale>(device, scale_, growth_tracker_);
}

const Tensor& GradScaler::scale_on(Device device) {
  if (on_device_) return on_device_->scale();
  for (const auto& [where, scale] : scales_) {
    if (where == device) return scale;
  }
  return scales_.emplace_back(device, full({}, scale_, {kFloat32, device})).second;
}

void GradScaler::set_scale(float scale, const char* by, SourceLocation where) {
  if (on_device_) on_device_->set(scale);
  if (scale == scale_) return;
  scale_ = scale;
  scales_.clear();  // losses that were scaled already keep the old ones
  change_ = {by, where};
}

Tensor GradScaler::scale(const Tensor& loss, SourceLocation where) {
  if (!enabled_) return loss;
  if (!loss.defined()) {
    throw ScalerError(where,
                      "outputs must be a Tensor or an iterable of Tensors: GradScaler.scale() expected a loss, got an "
                      "undefined tensor");
  }
  if (!is_floating_point(loss.dtype()))
    throw DTypeError(where, "GradScaler.scale(): expected a loss of a floating dtype, got {}", describe(loss));
  if (!is_in_place_) {
    is_in_place_ = true;
    scale_ = static_cast<float>(init_scale_);
  }
  if (options_.capturable) place_on(loss.device(), where);
  return detail::scaled_loss(loss, scale_on(loss.device()), {.scaler = number_, .scale = scale_, .where = where});
}

std::vector<Tensor> GradScaler::scale(const std::vector<Tensor>& losses, SourceLocation where) {
  std::vector<Tensor> result;
  result.reserve(losses.size());
  for (const Tensor& loss : losses)
    result.push_back(scale(loss, where));
  return result;
}

double GradScaler::get_scale() const noexcept {
  if (!enabled_) return 1;
  const double scale = on_device_ ? on_device_->read_scale() : is_in_place_ ? scale_ : init_scale_;
  autograd::note_reported_scale(scale);
  return scale;
}

int64_t GradScaler::growth_tracker() const noexcept {
  return !enabled_ ? 0 : on_device_ ? on_device_->read_growth_tracker() : growth_tracker_;
}

optim::OptimizerState GradScaler::state_dict() const {
  optim::OptimizerState state;
  state.optimizer = "GradScaler";
  if (!enabled_) return state;
  state.numbers = {{"scale", on_device_     ? on_device_->read_scale()
                             : is_in_place_ ? scale_
                                            : init_scale_},
                   {"growth_factor", options_.growth_factor},
                   {"backoff_factor", options_.backoff_factor},
                   {"growth_interval", static_cast<double>(options_.growth_interval)},
                   {"_growth_tracker", static_cast<double>(growth_tracker())}};
  return state;
}

void GradScaler::load_state_dict(const optim::OptimizerState& state, SourceLocation where) {
  if (!enabled_) return;
  if (state.numbers.empty() && state.tensors.empty()) {
    throw ValueError(where,
                     "The source state dict is empty, possibly because it was saved from a disabled instance of "
                     "GradScaler. Load it into one that is not enabled, or save it from one that is");
  }
  constexpr std::array kNames{"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"};
  if (!state.tensors.empty()) {
    throw ValueError(where, "GradScaler state: expected numbers alone, got the tensor '{}'",
                     state.tensors.front().first);
  }
  std::map<std::string, double> numbers(state.numbers.begin(), state.numbers.end());
  for (const char* const expected : kNames) {
    if (!numbers.contains(expected)) throw ValueError(where, "GradScaler state: '{}' is missing", expected);
  }
  if (numbers.size() > kNames.size()) {
    for (const char* const expected : kNames)
      numbers.erase(expected);
    throw ValueError(where, "GradScaler state: '{}' is not known", numbers.begin()->first);
  }
  init_scale_ = numbers["scale"];
  if (is_in_place_) set_scale(static_cast<float>(init_scale_), "load_state_dict()", where);
  options_.growth_factor = numbers["growth_factor"];
  options_.backoff_factor = numbers["backoff_factor"];
  options_.growth_interval = static_cast<int64_t>(numbers["growth_interval"]);
  growth_tracker_ = static_cast<int64_t>(numbers["_growth_tracker"]);
  if (on_device_) on_device_->set_growth_tracker(growth_tracker_);
}

}  // namespace brigade::amp
