// Pooling layers: [N, C, H, W] -> [N, C, H', W'] (or without N); floating dtypes.
#pragma once

#include <brigade/autograd/ops/pool.h>
#include <brigade/nn/module.h>
#include <brigade/nn/size2.h>

#include <optional>

namespace brigade::nn {

// H' = (H + 2 * padding - kernel_size) / stride + 1, rounded up with ceil_mode.
struct MaxPool2dOptions {
  std::optional<Size2> stride;  // kernel_size unless given: windows that do not overlap
  Size2 padding = 0;            // at most half of kernel_size
  bool ceil_mode = false;
};
struct AvgPool2dOptions {
  std::optional<Size2> stride;
  Size2 padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  // padding counts as zeros in the average
};

// Throw ValueError for a kernel_size or stride below 1; forward throws ShapeError, ValueError as the functions do.
struct MaxPool2dImpl : Module {
  explicit MaxPool2dImpl(Size2 kernel_size, const MaxPool2dOptions& options = {});
  explicit MaxPool2dImpl(const Pool2dParams& params);
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  Pool2dParams params;

 protected:
  std::string extra() const override;
};
struct AvgPool2dImpl : Module {
  explicit AvgPool2dImpl(Size2 kernel_size, const AvgPool2dOptions& options = {});
  explicit AvgPool2dImpl(const Pool2dParams& params);
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  Pool2dParams params;

 protected:
  std::string extra() const override;
};

//   nn::MaxPool2d pool(2);
//   nn::MaxPool2d pool(3, {.stride = 2, .padding = 1});
class MaxPool2d : public ModuleHolder<MaxPool2dImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  explicit MaxPool2d(Size2 kernel_size, const MaxPool2dOptions& options = {})
      : ModuleHolder(std::make_shared<MaxPool2dImpl>(kernel_size, options)) {}
};
class AvgPool2d : public ModuleHolder<AvgPool2dImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  explicit AvgPool2d(Size2 kernel_size, const AvgPool2dOptions& options = {})
      : ModuleHolder(std::make_shared<AvgPool2dImpl>(kernel_size, options)) {}
};

}  // namespace brigade::nn
