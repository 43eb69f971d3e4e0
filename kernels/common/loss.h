// Device-independent parts of the losses: checks, and the loss of one element with its derivatives.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/kernels/loss.h>

#include <cmath>

namespace brigade::kernels {

// Throws DeviceError when they are on two devices.
void check_loss_devices(const Tensor& x, const Tensor& target, const char* what);
// Throws ShapeError unless x and target have one shape, DTypeError unless they have one floating
// dtype, DeviceError when they are on two devices.
void check_pair(const Tensor& x, const Tensor& target, const char* what);
// Throws ShapeError unless `grad` has one element or, for Reduction::None, one for each loss.
void check_loss_gradient(const Tensor& grad, const Shape& losses, const char* what);

// `Math` has the device's best implementations of exp, log, log1p and, for an argument in 0..1, log1p_unit.
template <class Math, class C>
BRIGADE_HOST_DEVICE inline C pair_loss_value(PairLossKind kind, C x, C z, C parameter) {
  const C distance = x > z ? x - z : z - x;
  switch (kind) {
    case PairLossKind::Squared: return (x - z) * (x - z);
    case PairLossKind::Absolute: return distance;
    case PairLossKind::SmoothL1:
      return distance < parameter ? C(0.5) * distance * distance / parameter : distance - C(0.5) * parameter;
    case PairLossKind::Huber:
      return distance < parameter ? C(0.5) * distance * distance : parameter * (distance - C(0.5) * parameter);
    case PairLossKind::BinaryCrossEntropy: {
      // NaNs propagate.
      const C yes = Math::log(x);
      const C no = Math::log1p(-x);
      return (z - C(1)) * (no < C(-100) ? C(-100) : no) - z * (yes < C(-100) ? C(-100) : yes);
    }
    case PairLossKind::BceWithLogits: {
      const C magnitude = x > C(0) ? x : -x;
      const C against = x > C(0) ? C(1) - z : z;  // the target's factor; 0 also where x is infinite
      return (against == C(0) ? C(0) : magnitude * against) + Math::log1p_unit(Math::exp(-magnitude));
    }
    case PairLossKind::KlDivergence: return (z == C(0) ? C(0) : z * Math::log(z)) - z * x;
    case PairLossKind::KlDivergenceLog: break;
  }
  return Math::exp(z) * (z - x);
}

// The derivative of the loss with respect to x. At a kink it is 0 for |x - z|, else the slope of the side whose slope
// is not constant.
template <class Math, class C>
BRIGADE_HOST_DEVICE inline C pair_loss_input_slope(PairLossKind kind, C x, C z, C parameter) {
  const C d = x - z;
  switch (kind) {
    case PairLossKind::Squared: return C(2) * d;
    case PairLossKind::Absolute: return static_cast<C>((C(0) < d) - (d < C(0)));
    case PairLossKind::SmoothL1: return d <= -parameter ? C(-1) : d >= parameter ? C(1) : d / parameter;
    case PairLossKind::Huber: return d < -parameter ? -parameter : d > parameter ? parameter : d;
    case PairLossKind::BinaryCrossEntropy: {
      const C spread = (C(1) - x) * x;
      return d / (spread < C(1e-12) ? C(1e-12) : spread);
    }
    case PairLossKind::BceWithLogits: return C(1) / (C(1) + Math::exp(-x)) - z;
    case PairLossKind::KlDivergence: return -z;
    case PairLossKind::KlDivergenceLog: break;
  }
  return -Math::exp(z);
}

// The derivative of the loss with respect to z.
template <class Math, class C>
BRIGADE_HOST_DEVICE inline C pair_loss_target_slope(PairLossKind kind, C x, C z, C parameter) {
  switch (kind) {
    case PairLossKind::BinaryCrossEntropy: return Math::log1p(-x) - Math::log(x);
    case PairLossKind::BceWithLogits: return -x;
    case PairLossKind::KlDivergence: return Math::log(z) + z / z - x;  // NaN at 0, as in PyTorch
    case PairLossKind::KlDivergenceLog: return Math::exp(z) * (z - x + C(1));
    default: return -pair_loss_input_slope<Math>(kind, x, z, parameter);
  }
}

}  // namespace brigade::kernels
