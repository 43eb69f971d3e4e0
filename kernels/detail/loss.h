// What the losses of every device share: checks, shapes, where the result goes.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/core/index_error.h>
#include <brigade/kernels/loss.h>

namespace brigade::kernels {

inline constexpr IndexRole kTargetClass{"cross_entropy", "target", "class"};

// Sizes [rows, classes, spatial] of logits; a single [C] counts as one row.
struct ClassSizes {
  int64_t rows, classes, spatial;
  int class_dim;
};
// Throws DTypeError, ShapeError, DeviceError.
ClassSizes check_classes(const Tensor& logits, const Tensor& target);

// Throws ShapeError unless x and target are alike, DeviceError when they are on two devices.
void check_pair(const Tensor& x, const Tensor& target, const char* what);
// Throws ShapeError unless `grad` has one element or, for Reduction::None, one for each loss.
void check_loss_gradient(const Tensor& grad, const Shape& losses, const char* what);

struct SquaredDifference {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x, C z) const {
    return (x - z) * (x - z);
  }
};
struct SquaredDifferenceSlope {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x, C z) const {
    return C(2) * (x - z);
  }
};

}  // namespace brigade::kernels
