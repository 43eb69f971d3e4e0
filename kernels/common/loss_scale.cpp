// Argument checks of update_loss_scale.
#include <brigade/kernels/common/loss_scale.h>

#include <brigade/kernels/common/number_argument.h>

namespace brigade::kernels {

LossScaleUpdate loss_scale_update(const Tensor& scale, const Tensor& inverse, const Tensor& growth_tracker,
                                  const Tensor& found_inf, const LossScaleRule& rule) {
  const char* const what = "update_loss_scale";
  check_number(what, "scale", scale, scale, kFloat32);
  check_number(what, "inverse", inverse, scale, kFloat32);
  check_number(what, "growth_tracker", growth_tracker, scale, kInt64);
  check_number(what, "found_inf", found_inf, scale, kFloat32);
  return {.scale = scale.data_ptr<float>(),
          .inverse = inverse.data_ptr<float>(),
          .growth_tracker = growth_tracker.data_ptr<int64_t>(),
          .found_inf = found_inf.data_ptr<float>(),
          .rule = rule};
}

}  // namespace brigade::kernels
