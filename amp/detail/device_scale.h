// A loss scale in device memory, and its product with a loss.
#pragma once

#include <brigade/autograd/gradient_scale.h>
#include <brigade/core/tensor.h>
#include <brigade/kernels/optimizer.h>

#include <span>

namespace brigade::amp::detail {

// --- The state of a loss scaler in device memory, at fixed addresses: a CUDA graph that was captured once keeps using
// it, and no step waits for the host.

class DeviceScale {
 public:
  DeviceScale(Device device, float scale, int64_t growth_tracker);

  Device device() const noexcept { return scale_.device(); }
  // Float32 tensors without dimensions.
  const Tensor& scale() const noexcept { return scale_; }
  const Tensor& inverse() const noexcept { return inverse_; }

  // `found`: at least one float32 tensor, each with one element.
  void update(std::span<const Tensor> found, const kernels::LossScaleRule& rule);
  // Both write from the host: not in a capture.
  void set(float scale);
  void set_growth_tracker(int64_t iterations);
  // Wait for the device.
  float read_scale() const;
  int64_t read_growth_tracker() const;

 private:
  Tensor scale_, inverse_, growth_tracker_;
};

// --- The product of a loss and a scale, as a separate operation: its node carries the mark that records the scale of
// the gradients.

// loss * scale; `scale`: float32 without dimensions, on the loss's device.
Tensor scaled_loss(const Tensor& loss, const Tensor& scale, const autograd::ScaleMark& mark);

}  // namespace brigade::amp::detail
