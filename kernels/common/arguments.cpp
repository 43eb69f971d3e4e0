// Checks of tensors that hold a single number.
#include <brigade/kernels/common/arguments.h>

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
