// Argument checks of orthogonalize.
#include <brigade/kernels/common/orthogonalize.h>

namespace brigade::kernels {

void check_orthogonalize(const Tensor& matrix, const Tensor& fresh) {
  if (matrix.dim() != 2 || !matrix.is_contiguous())
    throw ShapeError("orthogonalize: expected a contiguous matrix, got {}", describe(matrix));
  if (!is_floating_point(matrix.dtype()))
    throw DTypeError("orthogonalize: expected a floating matrix, got {}", describe(matrix));
  if (!fresh.defined()) return;
  if (fresh.sizes() != matrix.sizes() || fresh.dtype() != matrix.dtype() || fresh.device() != matrix.device() ||
      !fresh.is_contiguous()) {
    throw ShapeError(
        "orthogonalize: fresh columns for {} must be contiguous and of its sizes, dtype and device, got {}",
        describe(matrix), describe(fresh));
  }
}

}  // namespace brigade::kernels
