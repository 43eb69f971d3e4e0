// The checks of the kernels over many tensors.
#include <brigade/kernels/foreach.h>

#include <brigade/kernels/common/foreach.h>

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

void check_scalar(const char* what, const char* role, const Tensor& scalar, std::span<const Tensor> tensors) {
  if (!scalar.defined() || scalar.numel() != 1)
    throw ShapeError("{}: {} must have one element, got {}", what, role, describe(scalar));
  if (!tensors.empty() && scalar.device() != tensors.front().device()) {
    throw DeviceError("{}: {} must be on {}, got {}", what, role, tensors.front().device(), describe(scalar));
  }
}

void check_float32(const char* what, const char* role, const Tensor& scalar) {
  if (scalar.dtype() != kFloat32) throw DTypeError("{}: {} must be float32, got {}", what, role, describe(scalar));
}

}  // namespace

void check_unscale(std::span<const Tensor> grads, const Tensor& inv_scale, const Tensor& found_inf) {
  const char* what = "foreach_unscale";
  check_alike(what, grads);
  check_scalar(what, "inv_scale", inv_scale, grads);
  check_scalar(what, "found_inf", found_inf, grads);
  check_float32(what, "inv_scale", inv_scale);
  check_float32(what, "found_inf", found_inf);
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
  check_scalar(what, "by", by, tensors);
  if (by.dtype() != kFloat32 && by.dtype() != kFloat64)
    throw DTypeError("foreach_scale: by must be float32 or float64, got {}", describe(by));
}

}  // namespace brigade::kernels
