// Type promotion: tensors with dimensions decide, unless those without are of a higher category.
#include <brigade/kernels/elementwise.h>

#include <optional>

namespace brigade::kernels {
namespace {

// The dtype names in PyTorch's messages.
const char* title(DType dtype) {
  constexpr const char* kTitles[] = {"Double", "Float", "Half", "BFloat16", "Long", "Int", "Byte", "Bool"};
  return kTitles[static_cast<int>(dtype)];
}

void join(std::optional<DType>& known, DType dtype) { known = known ? promote_types(*known, dtype) : dtype; }

}  // namespace

DType result_type(std::initializer_list<std::reference_wrapper<const Tensor>> operands) {
  std::optional<DType> with_dims, without_dims;
  for (const Tensor& operand : operands) {
    if (operand.defined()) join(operand.dim() > 0 ? with_dims : without_dims, operand.dtype());
  }
  if (!with_dims || !without_dims) return with_dims.value_or(without_dims.value_or(kFloat32));
  if (is_floating_point(*with_dims)) return *with_dims;
  const bool is_higher = *with_dims == kBool || is_floating_point(*without_dims);
  return is_higher ? promote_types(*with_dims, *without_dims) : *with_dims;
}

DType result_type(const Tensor& x, Scalar number) {
  const DType dtype = x.dtype();
  if (is_floating_point(dtype)) return dtype;
  if (number.is_floating_point()) return kFloat32;
  return dtype == kBool ? number.dtype() : dtype;
}

void check_result_type(const char* op, DType result, const Tensor& self) {
  const bool loses_fraction = is_floating_point(result) && !is_floating_point(self.dtype());
  const bool loses_number = self.dtype() == kBool && result != kBool;
  if (!loses_fraction && !loses_number) return;
  throw DTypeError(
      "result type {} can't be cast to the desired output type {}: {} on {} has a result of {}; write out of place, or "
      "convert the tensor first with .to()",
      title(result), title(self.dtype()), op, describe(self), name(result));
}

}  // namespace brigade::kernels
