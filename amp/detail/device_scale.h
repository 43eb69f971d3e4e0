// The state of a loss scaler in a device's memory, at addresses that stay: a CUDA graph that was captured once goes on
// with it, and no step waits for the host.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/loss_scale.h>

#include <span>

namespace brigade::amp::detail {

class DeviceScale {
 public:
  DeviceScale(Device device, float scale, int64_t growth_tracker);

  Device device() const noexcept { return scale_.device(); }
  // Float32 without dimensions.
  const Tensor& scale() const noexcept { return scale_; }
  const Tensor& inverse() const noexcept { return inverse_; }

  // `found`: float32 with one element each, at least one of them.
  void update(std::span<const Tensor> found, const kernels::LossScaleRule& rule);
  // These two come from the host: not in a capture.
  void set(float scale);
  void set_growth_tracker(int64_t iterations);
  // Wait for the device.
  float read_scale() const;
  int64_t read_growth_tracker() const;

 private:
  Tensor scale_, inverse_, growth_tracker_;
};

}  // namespace brigade::amp::detail
