#include <brigade/kernels/loss.h>

#include <brigade/kernels/detail/loss.h>

#include <string>

namespace brigade::kernels {

namespace {

void check_devices(const Tensor& x, const Tensor& target, const char* what) {
  if (x.device() == target.device()) return;
  throw DeviceError(std::string(what) + ": input and target must be on one device, got " + to_string(x.device()) +
                    " and " + to_string(target.device()));
}

}  // namespace

ClassSizes check_classes(const Tensor& logits, const Tensor& target) {
  check_devices(logits, target, "cross_entropy");
  if (target.dtype() != kInt64)
    throw DTypeError(std::string("cross_entropy: expected int64 targets, got ") + name(target.dtype()));
  Shape expected = logits.sizes();
  if (logits.dim() < 1)
    throw ShapeError("cross_entropy: expected logits [N, C, ...] or [C], got " + to_string(logits.sizes()));
  const int class_dim = logits.dim() == 1 ? 0 : 1;
  expected.erase(class_dim);
  if (target.sizes() != expected) {
    throw ShapeError("cross_entropy: logits " + to_string(logits.sizes()) + " need targets " + to_string(expected) +
                     ", got " + to_string(target.sizes()));
  }
  ClassSizes result{logits.dim() == 1 ? 1 : logits.sizes()[0], logits.sizes()[class_dim], 1, class_dim};
  for (int d = 2; d < logits.dim(); ++d)
    result.spatial *= logits.sizes()[d];
  return result;
}

void check_pair(const Tensor& x, const Tensor& target, const char* what) {
  check_devices(x, target, what);
  if (x.sizes() == target.sizes() && x.dtype() == target.dtype()) return;
  throw ShapeError(std::string(what) + ": expected a target like the input " + describe(x) + ", got " +
                   describe(target));
}

void check_loss_gradient(const Tensor& grad, const Shape& losses, const char* what) {
  if (grad.numel() == 1 || grad.sizes() == losses) return;
  throw ShapeError(std::string(what) + ": expected a gradient [] or " + to_string(losses) + ", got " + describe(grad));
}

}  // namespace brigade::kernels
