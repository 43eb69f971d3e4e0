// Pooling layers: [N, C, H, W] -> [N, C, H', W'], [N, C, L] -> [N, C, L'] (or without N); floating
// dtypes.
#pragma once

#include <brigade/autograd/ops/pool.h>
#include <brigade/nn/module.h>

namespace brigade::nn {

using brigade::AvgPool1dOptions;
using brigade::AvgPool2dOptions;
using brigade::MaxPool1dOptions;
using brigade::MaxPool2dOptions;

// These layers throw ValueError for a kernel_size, stride or dilation below 1; forward throws ShapeError, ValueError
// like the functions. With indices: see max_pool2d_with_indices.
struct MaxPool2dImpl : Module {
  using Size = Size2;
  using Options = MaxPool2dOptions;
  explicit MaxPool2dImpl(Size2 kernel_size, const MaxPool2dOptions& options = {});
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  Size2 kernel_size;
  Options options;

 protected:
  std::string extra() const override;
};
struct AvgPool2dImpl : Module {
  using Size = Size2;
  using Options = AvgPool2dOptions;
  explicit AvgPool2dImpl(Size2 kernel_size, const AvgPool2dOptions& options = {});
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  Size2 kernel_size;
  Options options;

 protected:
  std::string extra() const override;
};
struct MaxPool1dImpl : Module {
  using Options = MaxPool1dOptions;
  explicit MaxPool1dImpl(int64_t kernel_size, const MaxPool1dOptions& options = {});
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  int64_t kernel_size;
  Options options;

 protected:
  std::string extra() const override;
};
struct AvgPool1dImpl : Module {
  using Options = AvgPool1dOptions;
  explicit AvgPool1dImpl(int64_t kernel_size, const AvgPool1dOptions& options = {});
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  int64_t kernel_size;
  Options options;

 protected:
  std::string extra() const override;
};

namespace detail {

// A result of a given size, for any input size. `S`: int64_t, PoolOutputSize.
template <class S>
struct AdaptivePool : Module {
  S output_size;

 protected:
  AdaptivePool(const char* layer, S size);
  std::string extra() const override;
};

}  // namespace detail

struct AdaptiveAvgPool1dImpl : detail::AdaptivePool<int64_t> {
  explicit AdaptiveAvgPool1dImpl(int64_t output_size_) : AdaptivePool("AdaptiveAvgPool1d", output_size_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return adaptive_avg_pool1d(x, output_size, where);
  }
};
struct AdaptiveAvgPool2dImpl : detail::AdaptivePool<PoolOutputSize> {
  using Size = PoolOutputSize;
  explicit AdaptiveAvgPool2dImpl(PoolOutputSize output_size_) : AdaptivePool("AdaptiveAvgPool2d", output_size_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return adaptive_avg_pool2d(x, output_size, where);
  }
};
struct AdaptiveMaxPool1dImpl : detail::AdaptivePool<int64_t> {
  explicit AdaptiveMaxPool1dImpl(int64_t output_size_) : AdaptivePool("AdaptiveMaxPool1d", output_size_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return adaptive_max_pool1d(x, output_size, where);
  }
};
struct AdaptiveMaxPool2dImpl : detail::AdaptivePool<PoolOutputSize> {
  using Size = PoolOutputSize;
  explicit AdaptiveMaxPool2dImpl(PoolOutputSize output_size_) : AdaptivePool("AdaptiveMaxPool2d", output_size_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return adaptive_max_pool2d(x, output_size, where);
  }
};

//   nn::MaxPool2d pool(2);
//   nn::MaxPool2d pool({3, 5}, {.stride = 2, .padding = 1});
BRIGADE_MODULE(MaxPool2d);
BRIGADE_MODULE(AvgPool2d);
BRIGADE_MODULE(MaxPool1d);
BRIGADE_MODULE(AvgPool1d);
//   nn::AdaptiveAvgPool2d pool({1, 1});
//   nn::AdaptiveAvgPool2d rows({std::nullopt, 3});  // keeps the height
BRIGADE_MODULE(AdaptiveAvgPool2d);
BRIGADE_MODULE(AdaptiveMaxPool2d);
BRIGADE_MODULE(AdaptiveAvgPool1d);
BRIGADE_MODULE(AdaptiveMaxPool1d);

}  // namespace brigade::nn
