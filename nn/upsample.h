// Resizing as a layer: [N, C, H, W] -> [N, C, H', W'], [N, C, L] -> [N, C, L']; floating dtypes.
#pragma once

#include <brigade/autograd/ops/pool.h>
#include <brigade/core/options.h>
#include <brigade/nn/module.h>

#include <optional>

namespace brigade::nn {

// Factors of height and width, written as one number where both are equal; sequences take one
// number.
struct Scale2 {
  std::array<double, 2> values;

  constexpr Scale2(double both) noexcept : values{both, both} {}  // NOLINT: written as a number
  constexpr Scale2(double height, double width) noexcept : values{height, width} {}
};

// Set either size or scale_factor; see interpolate().
struct UpsampleOptions {
  std::optional<Size2> size = std::nullopt;
  std::optional<Scale2> scale_factor = std::nullopt;
  InterpolateMode mode = InterpolateMode::Nearest;
  bool align_corners = false;
};

// Throws ValueError for options that interpolate() rejects; forward throws like interpolate().
struct UpsampleImpl : Module {
  using Options = UpsampleOptions;
  explicit UpsampleImpl(const UpsampleOptions& options);
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  InterpolateOptions options;

 protected:
  std::string extra() const override;
};

//   nn::Upsample up({.scale_factor = 2});
//   nn::Upsample up({.size = Size2(7, 9), .mode = InterpolateMode::Bilinear, .align_corners = true});
BRIGADE_MODULE(Upsample);

}  // namespace brigade::nn
