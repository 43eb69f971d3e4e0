// An iteration of a scaler: each optimizer is ready, then unscaled, then stepped, until update().
#include <brigade/amp/detail/device_scale.h>
#include <brigade/amp/grad_scaler.h>
#include <brigade/autograd/listener.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/write_log.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/optimizer.h>
#include <brigade/optim/detail/batches.h>
#include <brigade/optim/detail/scaled_gradients.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace brigade::amp {

using autograd::ScalerError;

bool GradScaler::PerOptimizer::found_any() const {
  return std::any_of(found_inf.begin(), found_inf.end(),
                     [](const Tensor& each) { return brigade::detail::element_as_double(each, 0) != 0; });
}

GradScaler::PerOptimizer& GradScaler::state_of(optim::Optimizer& optimizer) {
  for (PerOptimizer& state : states_) {
    if (state.optimizer == &optimizer) return state;
  }
  return states_.emplace_back(PerOptimizer{&optimizer});
}

const GradScaler::PerOptimizer* GradScaler::find(const optim::Optimizer& optimizer) const noexcept {
  const auto same = [&](const PerOptimizer& state) { return state.optimizer == &optimizer; };
  const auto found = std::find_if(states_.begin(), states_.end(), same);
  return found == states_.end() ? nullptr : &*found;
}

std::optional<bool> GradScaler::found_inf(const optim::Optimizer& optimizer) const {
  const PerOptimizer* const state = find(optimizer);
  if (!state || state->found_inf.empty()) return std::nullopt;
  return state->asked ? *state->asked : state->found_any();
}

void GradScaler::require_scale(const char* function, const optim::Optimizer* optimizer, SourceLocation where) const {
  if (is_in_place_) return;
  SourceLocation backward;
  if (optimizer) {
    for (const Tensor& parameter : optimizer->parameters()) {
      const autograd::AutogradMeta* const known = autograd::meta(parameter);
      if (known && known->grad.defined() && known->stamp.backwards > 0) backward = known->stamp.last_backward_at;
    }
  }
  const bool is_known = backward.line() != 0;
  optim::detail::throw_scaler_error(
      where,
      "Attempted {} but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) "
      "earlier in the iteration. ({}at {}).\nwhy: {}.\ndo:  write scaler.scale(loss).backward(){}.",
      function, optimizer ? optimizer->name() + ", " : "", to_string(where),
      is_known ? "the loss of the backward at " + to_string(backward) + " was not scaled"
               : "scale() of this scaler was never called",
      is_known ? " there" : "");
}

void GradScaler::require_stage_ready(const PerOptimizer& state, SourceLocation where) const {
  const std::string last = updated_at_.line() != 0 ? "the last update() was at " + to_string(updated_at_)
                                                   : std::string("update() has not been called yet");
  if (state.stage == Stage::Unscaled) {
    optim::detail::throw_scaler_error(
        where,
        "unscale_() has already been called on this optimizer since the last update(). ({}, at {}).\nwhy: it was unscaled "
        "at {}; {}.\ndo:  call unscale_() once per optimizer and iteration, after its last backward, and update() at the "
        "end of every iteration.",
        state.optimizer->name(), to_string(where), to_string(state.unscaled_at), last);
  }
  if (state.stage == Stage::Stepped) {
    optim::detail::throw_scaler_error(
        where,
        "unscale_() is being called after step(). ({}, at {}).\nwhy: it has stepped at {}; {}.\ndo:  call "
        "update() at the end of every iteration, and unscale_() before step().",
        state.optimizer->name(), to_string(where), to_string(state.stepped_at), last);
  }
}

namespace {

// The gradient of each parameter; undefined if it has none.
std::vector<Tensor> gradients_to_unscale(const optim::Optimizer& optimizer, bool may_be_float16, SourceLocation where) {
  std::vector<Tensor> grads;
  for (const Tensor& parameter : optimizer.parameters()) {
    Tensor grad = parameter.grad();
    if (grad.defined() && grad.dtype() == kFloat16 && !may_be_float16) {
      optim::detail::throw_scaler_error(
          where,
          "Attempting to unscale FP16 gradients. ({} of {}, which is {}, at {}).\nwhy: half precision cannot hold "
          "small unscaled gradients.\ndo:  keep the parameters in float32 and compute in float16 within "
          "autocast, or move them by .master_weights = true, without hooks and unscale_().",
          optim::detail::parameter_in_words(parameter, grads.size()), optimizer.name(), describe(grad),
          to_string(where));
    }
    grads.push_back(std::move(grad));
  }
  return grads;
}

bool has_float16_gradients(const optim::Optimizer& optimizer) {
  const std::vector<Tensor> parameters = optimizer.parameters();
  return std::any_of(parameters.begin(), parameters.end(), [](const Tensor& parameter) {
    return parameter.dtype() == kFloat16 && parameter.grad().defined();
  });
}

}  // namespace

void GradScaler::require_on_device(const optim::Optimizer& optimizer, bool steps, SourceLocation where) const {
  if (!on_device_) return;
  if (steps && !optimizer.can_step_unknown()) {
    throw ScalerError(where,
                      "GradScaler.step() with .capturable = true: expected an optimizer whose step the device can "
                      "leave out by itself (SGD without hooks and, with momentum, without dampening; Adam and AdamW "
                      "without hooks, with .capturable = true), got {}. Use such an optimizer, or a scaler without "
                      ".capturable and its step() outside of a graph",
                      optimizer.name());
  }
  const std::vector<Tensor> parameters = optimizer.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor grad = parameters[i].grad();
    if (!grad.defined() || grad.device() == on_device_->device()) continue;
    throw ScalerError(where,
                      "GradScaler with .capturable = true: expected gradients on {}, where the scale is, got {} of {} "
                      "on {}. Use an optimizer and a scaler for each device, or a scaler without .capturable",
                      on_device_->device(), optim::detail::parameter_in_words(parameters[i], i), optimizer.name(),
                      grad.device());
  }
}

void GradScaler::PerOptimizer::look_at(const std::vector<Tensor>& grads, float factor, const Tensor& in_memory) {
  std::vector<std::pair<Device, Tensor>> factors;
  found_inf.clear();
  asked.reset();
  const std::vector<Tensor> parameters = optimizer->parameters();
  const auto is_known_finite = [&](size_t i) {
    return factor == 1 && !in_memory.defined() && autograd::meta(parameters[i])->stamp.scale.is_known_finite(grads[i]);
  };
  for (const optim::detail::Batch& batch : optim::detail::batches(grads, is_known_finite)) {
    size_t place = 0;
    while (place < factors.size() && factors[place].first != batch.device)
      ++place;
    if (place == factors.size()) {
      factors.emplace_back(batch.device, in_memory.defined() ? in_memory : full({}, factor, {kFloat32, batch.device}));
      found_inf.push_back(full({}, 0, {kFloat32, batch.device}));
    }
    if (batch.key == 0) kernels::foreach_unscale(batch.of(grads), factors[place].second, found_inf[place]);
  }
}

void GradScaler::unscale_(optim::Optimizer& optimizer, SourceLocation where) {
  if (enabled_) unscale_before(Before::AnotherCall, optimizer, where);
}

void GradScaler::unscale_before(Before before, optim::Optimizer& optimizer, SourceLocation where) {
  require_scale("unscale_", &optimizer, where);
  PerOptimizer& state = state_of(optimizer);
  require_stage_ready(state, where);
  require_on_device(optimizer, before == Before::Step, where);
  check_gradients(optimizer, where);
  state.look_at(gradients_to_unscale(optimizer, false, where), inverse_scale(),
                on_device_ ? on_device_->inverse() : Tensor());
  for (const Tensor& parameter : optimizer.parameters()) {
    autograd::AutogradMeta* const known = autograd::meta(parameter);
    if (!known || !known->grad.defined()) continue;
    known->grad.bump_version();
    autograd::note_write(known->grad, "unscale_", where);
    known->stamp.scale.on_unscale(number_, scale_, where, known->grad);
  }
  state.stage = Stage::Unscaled;
  state.unscaled_at = where;
}

bool GradScaler::prepare_fused_step(PerOptimizer& state, SourceLocation where) {
  optim::Optimizer& optimizer = *state.optimizer;
  // Float32 copies of float16 parameters take the gradients unchanged: none is unscaled in float16.
  const bool in_copies = optimizer.keeps_master_weights();
  const bool wanted = options_.fused_step || (in_copies && has_float16_gradients(optimizer));
  if (!wanted || !optimizer.can_step_scaled() || !std::isfinite(inverse_scale())) return false;
  check_gradients(optimizer, where);
  state.look_at(gradients_to_unscale(optimizer, in_copies, where), 1);
  return !state.found_inf.empty();
}

void GradScaler::throw_no_gradients(const optim::Optimizer& optimizer, SourceLocation where) const {
  const std::vector<Tensor> parameters = optimizer.parameters();
  std::string names;
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < std::min(parameters.size(), kShown); ++i)
    names += (i ? ", " : "") + optim::detail::parameter_in_words(parameters[i], i);
  if (parameters.size() > kShown) names += ", ...";
  optim::detail::throw_scaler_error(
      where,
      "No inf checks were recorded for this optimizer. ({} with {}, at {}).\nwhy: no backward since they were "
      "cleared has reached its {} parameters.\ndo:  step only optimizers whose parameters the loss of this "
      "iteration reaches, and call zero_grad() before backward.",
      optimizer.name(), names, to_string(where), parameters.size());
}

bool GradScaler::step(optim::Optimizer& optimizer, SourceLocation where) {
  if (!enabled_) {
    optimizer.step(where);
    return true;
  }
  require_scale("step", &optimizer, where);
  PerOptimizer& state = state_of(optimizer);
  if (state.stage == Stage::Stepped) {
    optim::detail::throw_scaler_error(
        where,
        "step() has already been called since the last update(). ({}, at {}).\nwhy: it has stepped at "
        "{}.\ndo:  call update() at the end of every iteration, after the steps of all its optimizers.",
        optimizer.name(), to_string(where), to_string(state.stepped_at));
  }
  require_on_device(optimizer, true, where);
  const bool is_fused = state.stage == Stage::Ready && prepare_fused_step(state, where);
  if (state.stage == Stage::Ready && !is_fused) unscale_before(Before::Step, optimizer, where);
  if (state.found_inf.empty()) throw_no_gradients(optimizer, where);
  autograd::ScaledStep question{.loss_scale = scale_,
                                .grad_factor = is_fused ? inverse_scale() : 1.0F,
                                .found_inf = !on_device_ && state.found_any(),
                                .found_elsewhere = found_by_rank_};
  if (on_device_) {
    question.device_found_inf = state.found_inf.front();
    question.grad_factor = 1;
    if (is_fused) question.device_factor = on_device_->inverse();
  }
  optimizer.step_unless_found(question, where);
  take_answer(state, question);
  state.stage = Stage::Stepped;
  state.stepped_at = where;
  return !question.found_inf;
}

void GradScaler::take_answer(PerOptimizer& state, const autograd::ScaledStep& answer) noexcept {
  if (!on_device_) state.asked = answer.found_inf;
  state.is_agreed = answer.is_agreed;
  if (answer.is_agreed) {
    is_shared_ = true;
    found_by_rank_ = false;
    found_by_others_ = found_by_others_ || answer.found_inf || answer.found_elsewhere;
  } else {
    found_by_rank_ = found_by_rank_ || answer.found_inf;
  }
}

void GradScaler::end_iteration(SourceLocation where) noexcept {
  states_.clear();
  found_by_others_ = false;
  found_by_rank_ = found_by_rank_ && is_shared_;
  updated_at_ = where;
  autograd::forget_unregistered_scaled_leaves();
}

namespace {

[[noreturn]] void throw_nothing_found(SourceLocation updated_at, SourceLocation where) {
  optim::detail::throw_scaler_error(
      where,
      "No inf checks were recorded prior to update. (at {}).\nwhy: no optimizer was stepped or unscaled by this "
      "scaler {}.\ndo:  call scaler.step(optimizer) before scaler.update(); optimizer.step() alone does not "
      "inform the scaler.",
      to_string(where), updated_at.line() != 0 ? "since update() at " + to_string(updated_at) : "yet");
}

}  // namespace

// Each rank changes its own scale according to what all ranks found: the result of an optimizer that only this rank
// knows would change the scale here alone.
void GradScaler::update_on_device(SourceLocation where) {
  std::vector<Tensor> found;
  const PerOptimizer* agreed = nullptr;
  const PerOptimizer* alone = nullptr;
  for (PerOptimizer& state : states_) {
    if (state.found_inf.empty()) continue;
    if (state.stage != Stage::Stepped) {  // only unscaled: the other ranks are asked now
      autograd::ScaledStep question{.loss_scale = scale_, .device_found_inf = state.found_inf.front()};
      state.optimizer->ask_found_inf(question, where);
      take_answer(state, question);
    }
    found.push_back(state.found_inf.front());
    (state.is_agreed ? agreed : alone) = &state;
  }
  if (found.empty()) throw_nothing_found(updated_at_, where);
  if (agreed && alone) {
    throw ScalerError(where,
                      "GradScaler.update() with .capturable = true: {} has stepped together with the other ranks, and "
                      "{} by this rank alone, so that the ranks' scales would become different ones. Give the second "
                      "one a scaler of its own, or use a scaler without .capturable",
                      agreed->optimizer->name(), alone->optimizer->name());
  }
  on_device_->update(found, rule());
  end_iteration(where);
}

void GradScaler::update(SourceLocation where) {
  if (!enabled_) return;
  require_scale("update", nullptr, where);
  if (on_device_) return update_on_device(where);
  bool any = false;
  for (PerOptimizer& state : states_) {
    if (state.found_inf.empty()) continue;
    any = true;
    if (state.asked) continue;
    // The optimizer was unscaled and never stepped.
    autograd::ScaledStep question{
        .loss_scale = scale_, .found_inf = state.found_any(), .found_elsewhere = found_by_rank_};
    state.optimizer->ask_found_inf(question, where);
    take_answer(state, question);
  }
  const bool found = found_by_others_ || (found_by_rank_ && !is_shared_);
  if (!any) throw_nothing_found(updated_at_, where);
  const kernels::LossScale next = kernels::next_loss_scale({scale_, growth_tracker_}, found, rule());
  set_scale(next.scale, "update()", where);
  growth_tracker_ = next.growth_tracker;
  end_iteration(where);
}

void GradScaler::update(double new_scale, SourceLocation where) {
  if (!enabled_) return;
  require_scale("update", nullptr, where);
  set_scale(static_cast<float>(new_scale), "update(new_scale)", where);
  end_iteration(where);
}

}  // namespace brigade::amp
