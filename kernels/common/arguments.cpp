// Checks of tensors that hold a single number, and the error for an operation without a kernel on a device.
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

void check_number(const char* what, const char* role, const Tensor& number, const Tensor& beside) {
  if (!number.defined() || number.numel() != 1)
    throw ShapeError("{}: {} must have one element, got {}", what, role, describe(number));
  if (beside.defined() && number.device() != beside.device())
    throw DeviceError("{}: {} must be on {}, got {}", what, role, beside.device(), describe(number));
}

void check_number(const char* what, const char* role, const Tensor& number, const Tensor& beside, DType dtype) {
  check_number(what, role, number, beside);
  if (number.dtype() != dtype) throw DTypeError("{}: {} must be {}, got {}", what, role, name(dtype), describe(number));
}

}  // namespace brigade::kernels

namespace brigade::detail {

void throw_no_kernel(const char* name, DeviceType device) {
  throw DeviceError("'{}' has no kernel for {}; this build of Brigade does not support it there", name,
                    brigade::name(device));
}

}  // namespace brigade::detail
