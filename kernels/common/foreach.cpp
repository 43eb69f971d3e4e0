// Argument checks of the foreach kernels.
#include <brigade/kernels/foreach.h>

#include <brigade/kernels/common/foreach.h>
#include <brigade/kernels/common/number_argument.h>

#include <string>

namespace brigade::kernels {

void check_alike(const char* what, std::span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors) {
    const Tensor& first = tensors.front();
    if (!is_floating_point(tensor.dtype()) || tensor.dtype() != first.dtype()) {
      throw DTypeError("{}: expected tensors of one floating dtype, got {} and {}; one call per dtype", what,
                       describe(first), describe(tensor));
    }
    if (tensor.device() != first.device()) {
      throw DeviceError("{}: expected tensors on one device, got {} and {}; one call per device", what, describe(first),
                        describe(tensor));
    }
  }
}

namespace {

// The first tensor (for its device), or an undefined one.
Tensor first_of(std::span<const Tensor> tensors) { return tensors.empty() ? Tensor() : tensors.front(); }

}  // namespace

void check_unscale(std::span<const Tensor> grads, const Tensor& inv_scale, const Tensor& found_inf) {
  const char* what = "foreach_unscale";
  check_alike(what, grads);
  check_number(what, "inv_scale", inv_scale, first_of(grads), kFloat32);
  check_number(what, "found_inf", found_inf, first_of(grads), kFloat32);
}

void check_norm(std::span<const Tensor> tensors, const Tensor& out) {
  const char* what = "foreach_norm";
  check_alike(what, tensors);
  if (out.dtype() != kFloat64) throw DTypeError("foreach_norm: out must be float64, got {}", describe(out));
  if (static_cast<size_t>(out.numel()) != tensors.size() || !out.is_contiguous()) {
    throw ShapeError("foreach_norm: out must be contiguous with one element per tensor ({}), got {}", tensors.size(),
                     describe(out));
  }
  if (!tensors.empty() && out.device() != tensors.front().device()) {
    throw DeviceError("foreach_norm: out must be on {}, got {}", tensors.front().device(), describe(out));
  }
}

void check_clip(std::span<const Tensor> tensors, double bound) {
  check_alike("foreach_clip", tensors);
  if (!(bound >= 0)) throw ValueError("foreach_clip: bound must be at least 0, got {}", bound);
}

void check_scale(std::span<const Tensor> tensors, const Tensor& by) {
  const char* what = "foreach_scale";
  check_alike(what, tensors);
  if (!by.defined()) return;
  check_number(what, "by", by, first_of(tensors));
  if (by.dtype() != kFloat32 && by.dtype() != kFloat64)
    throw DTypeError("foreach_scale: by must be float32 or float64, got {}", describe(by));
}

}  // namespace brigade::kernels
