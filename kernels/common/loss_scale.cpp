// The check of what an update of a loss scale is given.
#include <brigade/kernels/common/loss_scale.h>

namespace brigade::kernels {

LossScaleUpdate loss_scale_update(const Tensor& scale, const Tensor& inverse, const Tensor& growth_tracker,
                                  const Tensor& found_inf, const LossScaleRule& rule) {
  struct Number {
    const char* role;
    const Tensor& tensor;
    DType dtype;
  };
  for (const Number& each :
       {Number{"scale", scale, kFloat32}, Number{"inverse", inverse, kFloat32},
        Number{"growth_tracker", growth_tracker, kInt64}, Number{"found_inf", found_inf, kFloat32}}) {
    if (!each.tensor.defined() || each.tensor.numel() != 1) {
      throw ShapeError("update_loss_scale: {} must have one element, got {}", each.role, describe(each.tensor));
    }
    if (each.tensor.dtype() != each.dtype) {
      throw DTypeError("update_loss_scale: {} must be {}, got {}", each.role, name(each.dtype), describe(each.tensor));
    }
    if (each.tensor.device() != scale.device()) {
      throw DeviceError("update_loss_scale: {} must be on {}, got {}", each.role, scale.device(),
                        describe(each.tensor));
    }
  }
  return {.scale = scale.data_ptr<float>(),
          .inverse = inverse.data_ptr<float>(),
          .growth_tracker = growth_tracker.data_ptr<int64_t>(),
          .found_inf = found_inf.data_ptr<float>(),
          .rule = rule};
}

}  // namespace brigade::kernels
