// The check for floating dtypes, with one error message for all kernels.
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/core/error.h>

namespace brigade::kernels {

// Throws DTypeError naming `what` unless the dtype is floating.
inline void check_floating(DType dtype, const char* what) {
  if (is_floating_point(dtype)) return;
  throw DTypeError("{}: expected a floating dtype, got {}; convert with .to(kFloat32)", what, name(dtype));
}

}  // namespace brigade::kernels
