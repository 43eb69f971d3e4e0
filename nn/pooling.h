// Pooling layers: [N, C, H, W] -> [N, C, H', W'], [N, C, L] -> [N, C, L'] (or without N); floating dtypes.
#pragma once

#include <brigade/autograd/ops/pool.h>
#include <brigade/nn/module.h>
#include <brigade/nn/size2.h>

#include <optional>

namespace brigade::nn {

// H' = (H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1, rounded up with ceil_mode.
struct MaxPool2dOptions {
  std::optional<Size2> stride;  // kernel_size unless given: windows that do not overlap
  Size2 padding = 0;            // at most half of kernel_size
  Size2 dilation = 1;
  bool ceil_mode = false;
};
struct AvgPool2dOptions {
  std::optional<Size2> stride;
  Size2 padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;                           // padding counts as zeros in the average
  std::optional<int64_t> divisor_override = std::nullopt;  // what sums are divided by instead
};
struct MaxPool1dOptions {
  std::optional<int64_t> stride;
  int64_t padding = 0;
  int64_t dilation = 1;
  bool ceil_mode = false;
};
struct AvgPool1dOptions {
  std::optional<int64_t> stride;
  int64_t padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};

// Throw ValueError for a kernel_size, stride or dilation below 1; forward throws ShapeError, ValueError as the
// functions do. With indices: see max_pool2d_with_indices.
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
struct MaxPool1dImpl : Module {
  explicit MaxPool1dImpl(int64_t kernel_size, const MaxPool1dOptions& options = {});
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  Pool1dParams params;

 protected:
  std::string extra() const override;
};
struct AvgPool1dImpl : Module {
  explicit AvgPool1dImpl(int64_t kernel_size, const AvgPool1dOptions& options = {});
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  Pool1dParams params;

 protected:
  std::string extra() const override;
};

// Results of a given size, whatever the input's.
struct AdaptiveAvgPool1dImpl : Module {
  explicit AdaptiveAvgPool1dImpl(int64_t output_size);
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  int64_t output_size;

 protected:
  std::string extra() const override;
};
struct AdaptiveAvgPool2dImpl : Module {
  explicit AdaptiveAvgPool2dImpl(PoolOutputSize output_size);
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  PoolOutputSize output_size;

 protected:
  std::string extra() const override;
};
struct AdaptiveMaxPool1dImpl : Module {
  explicit AdaptiveMaxPool1dImpl(int64_t output_size);
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  int64_t output_size;

 protected:
  std::string extra() const override;
};
struct AdaptiveMaxPool2dImpl : Module {
  explicit AdaptiveMaxPool2dImpl(PoolOutputSize output_size);
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  PoolOutputSize output_size;

 protected:
  std::string extra() const override;
};

//   nn::MaxPool2d pool(2);
//   nn::MaxPool2d pool(3, {.stride = 2, .padding = 1});
class MaxPool2d : public ModuleHolder<MaxPool2dImpl> {
 public:
  BRIGADE_HANDLE(MaxPool2d, MaxPool2dImpl)
  explicit MaxPool2d(Size2 kernel_size, const MaxPool2dOptions& options = {},
                     SourceLocation where = SourceLocation::current())
      : ModuleHolder(std::make_shared<MaxPool2dImpl>(kernel_size, options), where) {}
};
class AvgPool2d : public ModuleHolder<AvgPool2dImpl> {
 public:
  BRIGADE_HANDLE(AvgPool2d, AvgPool2dImpl)
  explicit AvgPool2d(Size2 kernel_size, const AvgPool2dOptions& options = {},
                     SourceLocation where = SourceLocation::current())
      : ModuleHolder(std::make_shared<AvgPool2dImpl>(kernel_size, options), where) {}
};
class MaxPool1d : public ModuleHolder<MaxPool1dImpl> {
 public:
  BRIGADE_HANDLE(MaxPool1d, MaxPool1dImpl)
  explicit MaxPool1d(int64_t kernel_size, const MaxPool1dOptions& options = {},
                     SourceLocation where = SourceLocation::current())
      : ModuleHolder(std::make_shared<MaxPool1dImpl>(kernel_size, options), where) {}
};
class AvgPool1d : public ModuleHolder<AvgPool1dImpl> {
 public:
  BRIGADE_HANDLE(AvgPool1d, AvgPool1dImpl)
  explicit AvgPool1d(int64_t kernel_size, const AvgPool1dOptions& options = {},
                     SourceLocation where = SourceLocation::current())
      : ModuleHolder(std::make_shared<AvgPool1dImpl>(kernel_size, options), where) {}
};
//   nn::AdaptiveAvgPool2d pool({1, 1});
//   nn::AdaptiveAvgPool2d rows({std::nullopt, 3});  // keeps the height
class AdaptiveAvgPool2d : public ModuleHolder<AdaptiveAvgPool2dImpl> {
 public:
  BRIGADE_HANDLE(AdaptiveAvgPool2d, AdaptiveAvgPool2dImpl)
  explicit AdaptiveAvgPool2d(PoolOutputSize output_size, SourceLocation where = SourceLocation::current())
      : ModuleHolder(std::make_shared<AdaptiveAvgPool2dImpl>(output_size), where) {}
};
class AdaptiveMaxPool2d : public ModuleHolder<AdaptiveMaxPool2dImpl> {
 public:
  BRIGADE_HANDLE(AdaptiveMaxPool2d, AdaptiveMaxPool2dImpl)
  explicit AdaptiveMaxPool2d(PoolOutputSize output_size, SourceLocation where = SourceLocation::current())
      : ModuleHolder(std::make_shared<AdaptiveMaxPool2dImpl>(output_size), where) {}
};
BRIGADE_MODULE(AdaptiveAvgPool1d);
BRIGADE_MODULE(AdaptiveMaxPool1d);

}  // namespace brigade::nn
