// GradScaler: keeps small half-precision gradients from becoming zero, like torch.amp.GradScaler
// (Micikevicius et al., Mixed Precision Training, ICLR 2018).
//
//   amp::GradScaler scaler;
//   for (...) {
//     optimizer.zero_grad();
//     scaler.scale(loss).backward();
//     scaler.unscale_(optimizer);  // only to read or clip the gradients
//     optim::clip_grad_norm_(parameters, 1.0);
//     scaler.step(optimizer);
//     scaler.update();
//   }
//
// The loss is multiplied by a scale before backward, and the gradients are divided by it before the step. If a gradient
// is infinite or NaN then, the scale was too large: the step is skipped, and update() lowers the scale. After a number
// of iterations without a skipped step, update() raises it.
//
// Each gradient records its scale and its scaler (autograd/gradient_scale.h). A step with gradients of another scale,
// of two scales, of another scaler, or of an unscaled loss throws autograd::ScalerError before any weight changes.
// Errors that PyTorch also reports begin with PyTorch's text; errors that it does not detect begin with the optimizer.
#pragma once

#include <brigade/autograd/gradient_scale.h>
#include <brigade/core/tensor.h>
#include <brigade/kernels/optimizer.h>
#include <brigade/optim/optimizer.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace brigade::amp {

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;        // above 1
  double backoff_factor = 0.5;     // below 1
  int64_t growth_interval = 2000;  // iterations without a skipped step until the scale grows
  bool enabled = true;             // false: scale() and unscale_() do nothing, step() only steps
  DeviceType device = kCPU;        // if there is no such device, the scaler is not enabled, with a warning
  // step() without unscale_() only checks the gradients, and the optimizer (SGD, Adam, AdamW without hooks) divides
  // them as it reads them: they are not written, and stay scaled. If false, step() leaves them unscaled, as PyTorch's
  // does.
  bool fused_step = false;
  // The scale, its count of iterations and the results of the inf checks stay in the memory of the losses' device, at
  // fixed addresses. No call waits for the host, and a whole step, update() included, can be captured into a CUDA graph
  // (core/cuda/graph.h) after one step outside. For SGD without hooks (with momentum: without dampening), Adam and
  // AdamW without hooks and with .capturable = true, and for parameters on the losses' device. step() returns true and
  // counts no skipped step, since the host does not know; backward() must come before update(), which changes the scale
  // that a loss was multiplied by.
  bool capturable = false;
};

namespace detail {
class DeviceScale;
}

class GradScaler {
 public:
  // Throws ValueError "The growth factor must be > 1.0.", "The backoff factor must be < 1.0.".
  explicit GradScaler(const GradScalerOptions& options = {});
  ~GradScaler();
  GradScaler(const GradScaler&) = delete;
  GradScaler& operator=(const GradScaler&) = delete;

  // The loss (any shape, any floating dtype, any device) times the scale, as a new result with the
  // dtype of a product with a float32 tensor without dimensions: a half loss without dimensions
  // becomes float32. The first call creates the scale.
  Tensor scale(const Tensor& loss, SourceLocation where = SourceLocation::current());
  std::vector<Tensor> scale(const std::vector<Tensor>& losses, SourceLocation where = SourceLocation::current());

  // Divides the gradients of the optimizer's parameters by the scale, in place, and records whether any of them is
  // infinite or NaN. Does not wait for a device. Throws ScalerError: "Attempted unscale_ but _scale is None ...",
  // "unscale_() has already been called on this optimizer since the last update().", "unscale_() is being called after
  // step().", "Attempting to unscale FP16 gradients.", and for gradients of another scale (see above). In these cases
  // nothing has changed.
  void unscale_(optim::Optimizer& optimizer, SourceLocation where = SourceLocation::current());
  // Unscales, unless unscale_() was called, and calls optimizer.step() if all gradients are finite. Returns whether it
  // stepped. The host waits here for the device's result (not with `capturable`: the device decides, and the return
  // value is true). Throws what unscale_() and optimizer.step() throw, and ScalerError "Attempted step but _scale is
  // None ...", "step() has already been called since the last update().", "No inf checks were recorded for this
  // optimizer."
  bool step(optim::Optimizer& optimizer, SourceLocation where = SourceLocation::current());
  // Ends an iteration, after the steps of all its optimizers: lowers the scale if a step was skipped, raises it after
  // growth_interval iterations in a row without a skipped step. Throws ScalerError "Attempted update but _scale is None
  // ...", "No inf checks were recorded prior to update."
  void update(SourceLocation where = SourceLocation::current());
  // Sets the scale to `new_scale` instead; the count of iterations continues.
  void update(double new_scale, SourceLocation where = SourceLocation::current());

  bool is_enabled() const noexcept { return enabled_; }
  // 1 when not enabled.
  double get_scale() const noexcept;
  double get_growth_factor() const noexcept { return options_.growth_factor; }
  double get_backoff_factor() const noexcept { return options_.backoff_factor; }
  int64_t get_growth_interval() const noexcept { return options_.growth_interval; }
  void set_growth_factor(double factor) noexcept { options_.growth_factor = factor; }
  void set_backoff_factor(double factor) noexcept { options_.backoff_factor = factor; }
  void set_growth_interval(int64_t interval) noexcept { options_.growth_interval = interval; }
  // Iterations without a skipped step since the scale last changed; 0 when not enabled.
  int64_t growth_tracker() const noexcept;
  // What unscale_() or step() found for this optimizer since the last update(); nothing if neither
  // was called, or without gradients. Waits for the device.
  std::optional<bool> found_inf(const optim::Optimizer& optimizer) const;

  // "scale", "growth_factor", "backoff_factor", "growth_interval" and "_growth_tracker"; nothing when
  // not enabled. For optim::Checkpoint:
  //   checkpoint.part("scaler", [&] { return scaler.state_dict(); },
  //                   [&](const auto& state) { scaler.load_state_dict(state); });
  optim::OptimizerState state_dict() const;
  // Does nothing when not enabled. Throws ValueError "The source state dict is empty, ...", or for
  // entries that are missing or unknown; then nothing has been changed.
  void load_state_dict(const optim::OptimizerState& state, SourceLocation where = SourceLocation::current());

 private:
  // The stage of an optimizer since the last update().
  enum class Stage : uint8_t { Ready, Unscaled, Stepped };
  struct PerOptimizer {
    optim::Optimizer* optimizer;
    Stage stage = Stage::Ready;
    std::vector<Tensor> found_inf;  // one per device; float32, 1 if a gradient is not finite
    std::optional<bool> asked;      // the answer for its step (ScaledStep::found_inf)
    bool is_agreed = false;         // the ranks of a group stepped together
    SourceLocation unscaled_at, stepped_at;

    // Records non-finite gradients, and multiplies all by `factor` unless it is 1, or by
    // `in_memory` (as in kernels::foreach_unscale) if that is defined. `grads`: those of the
    // optimizer's parameters.
    void look_at(const std::vector<Tensor>& grads, float factor, const Tensor& in_memory = {});
    bool found_any() const;
  };

  PerOptimizer& state_of(optim::Optimizer& optimizer);
  const PerOptimizer* find(const optim::Optimizer& optimizer) const noexcept;
  void require_scale(const char* function, const optim::Optimizer* optimizer, SourceLocation where) const;
  void require_stage_ready(const PerOptimizer& state, SourceLocation where) const;
  // What the caller is about to do. A fault is reported to the other ranks at their next step.
  enum class Before : uint8_t { Step, AnotherCall };
  void check_gradients(const optim::Optimizer& optimizer, SourceLocation where) const;
  void unscale_before(Before before, optim::Optimizer& optimizer, SourceLocation where);
  kernels::LossScaleRule rule() const noexcept {
    return {options_.growth_factor, options_.backoff_factor, options_.growth_interval};
  }
  float inverse_scale() const noexcept { return static_cast<float>(1.0 / static_cast<double>(scale_)); }
  // Whether the optimizer can do the division; if so, its gradients have been checked.
  bool prepare_fused_step(PerOptimizer& state, SourceLocation where);
  // Takes over the answer of the optimizer's listeners to a question.
  void take_answer(PerOptimizer& state, const autograd::ScaledStep& answer) noexcept;
  [[noreturn]] void throw_no_gradients(const optim::Optimizer& optimizer, SourceLocation where) const;
  // Throws ScalerError for losses, gradients or optimizers that a `capturable` scaler cannot take.
  void place_on(Device device, SourceLocation where);
  void require_on_device(const optim::Optimizer& optimizer, bool steps, SourceLocation where) const;
  void update_on_device(SourceLocation where);
  // The scale as a tensor on that device.
  const Tensor& scale_on(Device device);
  void set_scale(float scale, const char* by, SourceLocation where);
  void end_iteration(SourceLocation where) noexcept;

  GradScalerOptions options_;
  bool enabled_;
  uint64_t number_ = 0;  // identifies this scaler in marks
  // False until the first call of scale(), which sets the scale to init_scale_.
  bool is_in_place_ = false;
  double init_scale_;
  float scale_ = 0;  // with on_device_: the latest one that the host has set, which labels gradients
  int64_t growth_tracker_ = 0;
  std::unique_ptr<detail::DeviceScale> on_device_;  // with `capturable`, once in place: holds the scale
  std::vector<std::pair<Device, Tensor>> scales_;
  std::deque<PerOptimizer> states_;  // in the order of their first calls
  // Ranks that train together keep one scale. If no other rank learns what an optimizer found (no
  // wrapper reduces its parameters), the result waits for the next question that goes to all ranks,
  // and then lowers the scale of all of them.
  bool is_shared_ = false;        // other ranks have been asked
  bool found_by_rank_ = false;    // found here, not reported to the other ranks yet
  bool found_by_others_ = false;  // found on some rank, reported since the last update()
  SourceLocation updated_at_;
  // What last changed the scale.
  struct Change {
    const char* by;  // "update()"
    SourceLocation where;
  };
  std::optional<Change> change_;
};

}  // namespace brigade::amp
