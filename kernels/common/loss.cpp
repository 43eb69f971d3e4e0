// The name of each loss, and checks of inputs, targets and gradients.
#include <brigade/kernels/loss.h>

#include <brigade/kernels/common/check_floating.h>
#include <brigade/kernels/common/loss.h>

#include <string>

namespace brigade::kernels {

const char* name(PairLossKind kind) noexcept {
  switch (kind) {
    case PairLossKind::Squared: return "mse_loss";
    case PairLossKind::Absolute: return "l1_loss";
    case PairLossKind::SmoothL1: return "smooth_l1_loss";
    case PairLossKind::Huber: return "huber_loss";
    case PairLossKind::BinaryCrossEntropy: return "binary_cross_entropy";
    case PairLossKind::BceWithLogits: return "binary_cross_entropy_with_logits";
    case PairLossKind::KlDivergence:
    case PairLossKind::KlDivergenceLog: break;
  }
  return "kl_div";
}

void check_loss_devices(const Tensor& x, const Tensor& target, const char* what) {
  if (x.device() == target.device()) return;
  throw DeviceError("{}: input and target must be on one device, got {} and {}", what, x.device(), target.device());
}

void check_pair(const Tensor& x, const Tensor& target, const char* what) {
  check_loss_devices(x, target, what);
  if (x.sizes() != target.sizes()) {
    throw ShapeError("{}: expected a target like the input {}, got {}", what, describe(x), describe(target));
  }
  if (x.dtype() != target.dtype()) {
    throw DTypeError("{}: expected a target of the input's dtype {}, got {}; convert it with .to()", what,
                     brigade::name(x.dtype()), brigade::name(target.dtype()));
  }
  check_floating(x.dtype(), what);
}

void check_loss_gradient(const Tensor& grad, const Shape& losses, const char* what) {
  if (grad.numel() == 1 || grad.sizes() == losses) return;
  throw ShapeError("{}: expected a gradient [] or {}, got {}", what, losses, describe(grad));
}

}  // namespace brigade::kernels
