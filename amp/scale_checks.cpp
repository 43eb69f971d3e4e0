// Checks the stamps of gradients that a scaler is about to unscale.
#include <brigade/amp/grad_scaler.h>
#include <brigade/autograd/listener.h>
#include <brigade/optim/detail/scaled_gradients.h>

#include <string>

namespace brigade::amp {
namespace {

using autograd::ScaleKnown;
using autograd::ScaleLabel;
using autograd::ScaleOrigin;
using autograd::ScaleStamp;
using brigade::detail::in_words;
using optim::detail::origin_in_words;

// A scaled gradient of a leaf that is not a parameter of any optimizer may have been passed on to
// another backward, whose gradients are then scaled without a mark.
bool may_be_scaled_by_hand() {
  const auto& aside = autograd::unregistered_leaves_with_scaled_grads();
  if (aside.empty()) return false;
  size_t parameters = 0;
  for (const optim::Optimizer* const optimizer : optim::optimizers_of_this_thread()) {
    for (const Tensor& parameter : optimizer->parameters())
      parameters += aside.contains(parameter.id());
  }
  return parameters < aside.size();
}

bool is_of_unscaled_loss(const ScaleOrigin& origin) { return origin.scaler == 0 && !origin.is_unscaled(); }

// The scaler that checks the gradients.
struct Asking {
  uint64_t number;
  double scale;
  std::string change;  // "; update() at a.cpp:3 has set the scale to 512"
};

using autograd::ScaleFault;

ScaleFault fault_of(const ScaleOrigin& origin, const Asking& scaler) {
  const std::string scale = in_words(scaler.scale);
  if (origin.is_unscaled()) {
    return {.text = "was unscaled already, at " + to_string(origin.unscaled_at) +
                    ", and no backward has come since the one at " + to_string(origin.backward_at),
            .advice =
                "unscale each gradient once: a parameter belongs to one optimizer, unscale_() and step() to one "
                "scaler with one update() after them, and zero_grad() clears what the next backward may not reach"};
  }
  if (is_of_unscaled_loss(origin)) {
    if (may_be_scaled_by_hand()) return {};
    return {.text = "comes from a loss that was not scaled: the backward at " + to_string(origin.backward_at) +
                    " bypassed the scaler, whose scale is " + scale + "; unscaled, it would be " + scale +
                    " times too small",
            .advice = "write scaler.scale(loss).backward() there"};
  }
  if (origin.scaler != scaler.number) {
    return {.text = "was scaled by another scaler: " + origin_in_words(origin) + ", and this one's scale is " + scale,
            .advice = "step each optimizer by the scaler that scaled its loss"};
  }
  if (origin.times > 1) {
    return {.text = "was scaled " + (origin.times == 2 ? "twice" : std::to_string(origin.times) + " times") + ": " +
                    origin_in_words(origin) + "; this scaler's scale is " + scale,
            .advice = "call scale() once for each loss"};
  }
  return {.text = "was made at another scale: " + origin_in_words(origin) + ", and would be unscaled by " + scale +
                  scaler.change,
          .advice = "call update() once per iteration, after the steps of all its optimizers"};
}

// What is wrong with a gradient that has this label; no text for nothing.
ScaleFault fault_of(const ScaleLabel& label, const Asking& scaler) {
  if (label == ScaleKnown::Mixed) {
    const bool has_unscaled_loss = is_of_unscaled_loss(label.first) || is_of_unscaled_loss(label.second);
    if (has_unscaled_loss && may_be_scaled_by_hand()) return {};
    ScaleFault fault = optim::detail::mixture_fault(label);
    fault.text += scaler.change;
    return fault;
  }
  if (label != ScaleKnown::One || (scaler.scale == 1 && label.first.scale == 1)) return {};
  const bool fits = label.first.scaler == scaler.number && label.first.scale == scaler.scale;
  return fits && !label.first.is_unscaled() ? ScaleFault{} : fault_of(label.first, scaler);
}

}  // namespace

void GradScaler::check_gradients(const optim::Optimizer& optimizer, SourceLocation where) const {
  Asking scaler{.number = number_, .scale = scale_, .change = ""};
  if (change_) {
    scaler.change = "; " + std::string(change_->by) + " at " + to_string(change_->where) + " has set the scale to " +
                    in_words(scaler.scale);
  }
  ScaleFault fault;
  const std::vector<Tensor> parameters = optimizer.parameters();
  autograd::announce_reading(parameters);  // a reducer may have to finish pending work first
  const auto look = [&](size_t i, const Tensor&, const Tensor& gradient, ScaleStamp& stamp) {
    stamp.settle(gradient);
    ScaleFault found = fault_of(stamp.label, scaler);
    // Zeros are right at any scale.
    if (found.text.empty() || optim::detail::is_all_zero(gradient)) return;
    if (!fault.text.empty()) {
      ++fault.others;
      return;
    }
    fault = std::move(found);
    fault.position = i;
  };
  optim::detail::for_each_labelled(parameters, look);
  if (fault.text.empty()) return;
  optimizer.refuse_step(fault, where);  // unscale_() precedes a step, which the other ranks enter
  optim::detail::throw_scale_fault(optimizer.name(), parameters, fault, where);
}

}  // namespace brigade::amp
