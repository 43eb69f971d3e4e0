// Checks of windows and strides, forward and printed options of the pooling layers.
#include <brigade/nn/pooling.h>

#include <brigade/nn/detail/text.h>

namespace brigade::nn {

namespace {

Size2 stride_of(const Pool2dParams& p) {
  return p.stride == std::array<int64_t, 2>{0, 0} ? Size2(p.kernel_size) : Size2(p.stride);
}
int64_t stride_of(const Pool1dParams& p) { return p.stride == 0 ? p.kernel_size : p.stride; }

void check(const char* layer, const Pool2dParams& p) {
  for (size_t d = 0; d < 2; ++d) {
    if (p.kernel_size[d] >= 1 && stride_of(p)[d] >= 1 && p.dilation[d] >= 1) continue;
    throw ValueError(std::string(layer) + ": kernel_size, stride and dilation must be at least 1, got " +
                     to_string(Size2(p.kernel_size)) + ", " + to_string(stride_of(p)) + " and " +
                     to_string(Size2(p.dilation)));
  }
  if (p.divisor_override == 0) throw ValueError(std::string(layer) + ": divisor_override must not be 0");
}
void check(const char* layer, const Pool1dParams& p) {
  if (p.kernel_size >= 1 && stride_of(p) >= 1 && p.dilation >= 1) return;
  throw ValueError(std::string(layer) + ": kernel_size, stride and dilation must be at least 1, got " +
                   std::to_string(p.kernel_size) + ", " + std::to_string(stride_of(p)) + " and " +
                   std::to_string(p.dilation));
}

// A stride of 0 is the functions' word for kernel_size; given to a layer it is a mistake.
template <class Stride>
Stride checked_stride(const char* layer, const std::optional<Stride>& stride, const Stride& kernel_size) {
  if (stride && *stride == Stride(0)) throw ValueError(std::string(layer) + ": stride must be at least 1, got 0");
  return stride.value_or(kernel_size);
}

void check_output(const char* layer, std::optional<int64_t> size) {
  if (size && *size < 1)
    throw ValueError(std::string(layer) + ": output_size must be at least 1, got " + std::to_string(*size));
}

std::string describe(const Pool2dParams& p) {
  return "kernel_size=" + to_string(Size2(p.kernel_size)) + ", stride=" + to_string(stride_of(p)) +
         ", padding=" + to_string(Size2(p.padding));
}
std::string describe(const PoolOutputSize& size) {
  const auto text = [](std::optional<int64_t> value) { return value ? std::to_string(*value) : "none"; };
  return "output_size=[" + text(size.values[0]) + ", " + text(size.values[1]) + "]";
}

}  // namespace

MaxPool2dImpl::MaxPool2dImpl(Size2 kernel_size, const MaxPool2dOptions& o)
    : MaxPool2dImpl(Pool2dParams{.kernel_size = kernel_size,
                                 .stride = checked_stride("MaxPool2d", o.stride, kernel_size),
                                 .padding = o.padding,
                                 .ceil_mode = o.ceil_mode,
                                 .dilation = o.dilation}) {}
MaxPool2dImpl::MaxPool2dImpl(const Pool2dParams& p) : params(p) { check("MaxPool2d", p); }
Tensor MaxPool2dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return max_pool2d(x, params, where);
}
std::string MaxPool2dImpl::extra() const {
  return describe(params) + ", dilation=" + to_string(Size2(params.dilation)) +
         ", ceil_mode=" + detail::text_of(params.ceil_mode);
}

AvgPool2dImpl::AvgPool2dImpl(Size2 kernel_size, const AvgPool2dOptions& o)
    : AvgPool2dImpl(Pool2dParams{.kernel_size = kernel_size,
                                 .stride = checked_stride("AvgPool2d", o.stride, kernel_size),
                                 .padding = o.padding,
                                 .ceil_mode = o.ceil_mode,
                                 .count_include_pad = o.count_include_pad,
                                 .divisor_override = o.divisor_override}) {}
AvgPool2dImpl::AvgPool2dImpl(const Pool2dParams& p) : params(p) { check("AvgPool2d", p); }
Tensor AvgPool2dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return avg_pool2d(x, params, where);
}
std::string AvgPool2dImpl::extra() const { return describe(params); }

MaxPool1dImpl::MaxPool1dImpl(int64_t kernel_size, const MaxPool1dOptions& o)
    : params{.kernel_size = kernel_size,
             .stride = checked_stride("MaxPool1d", o.stride, kernel_size),
             .padding = o.padding,
             .ceil_mode = o.ceil_mode,
             .dilation = o.dilation} {
  check("MaxPool1d", params);
}
Tensor MaxPool1dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return max_pool1d(x, params, where);
}
std::string MaxPool1dImpl::extra() const {
  return "kernel_size=" + std::to_string(params.kernel_size) + ", stride=" + std::to_string(params.stride) +
         ", padding=" + std::to_string(params.padding) + ", dilation=" + std::to_string(params.dilation) +
         ", ceil_mode=" + detail::text_of(params.ceil_mode);
}

AvgPool1dImpl::AvgPool1dImpl(int64_t kernel_size, const AvgPool1dOptions& o)
    : params{.kernel_size = kernel_size,
             .stride = checked_stride("AvgPool1d", o.stride, kernel_size),
             .padding = o.padding,
             .ceil_mode = o.ceil_mode,
             .count_include_pad = o.count_include_pad} {
  check("AvgPool1d", params);
}
Tensor AvgPool1dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return avg_pool1d(x, params, where);
}
std::string AvgPool1dImpl::extra() const {
  return "kernel_size=[" + std::to_string(params.kernel_size) + "], stride=[" + std::to_string(params.stride) +
         "], padding=[" + std::to_string(params.padding) + "]";
}

AdaptiveAvgPool1dImpl::AdaptiveAvgPool1dImpl(int64_t size) : output_size(size) {
  check_output("AdaptiveAvgPool1d", size);
}
Tensor AdaptiveAvgPool1dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return adaptive_avg_pool1d(x, output_size, where);
}
std::string AdaptiveAvgPool1dImpl::extra() const { return "output_size=" + std::to_string(output_size); }

AdaptiveMaxPool1dImpl::AdaptiveMaxPool1dImpl(int64_t size) : output_size(size) {
  check_output("AdaptiveMaxPool1d", size);
}
Tensor AdaptiveMaxPool1dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return adaptive_max_pool1d(x, output_size, where);
}
std::string AdaptiveMaxPool1dImpl::extra() const { return "output_size=" + std::to_string(output_size); }

AdaptiveAvgPool2dImpl::AdaptiveAvgPool2dImpl(PoolOutputSize size) : output_size(size) {
  for (const auto& value : size.values)
    check_output("AdaptiveAvgPool2d", value);
}
Tensor AdaptiveAvgPool2dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return adaptive_avg_pool2d(x, output_size, where);
}
std::string AdaptiveAvgPool2dImpl::extra() const { return describe(output_size); }

AdaptiveMaxPool2dImpl::AdaptiveMaxPool2dImpl(PoolOutputSize size) : output_size(size) {
  for (const auto& value : size.values)
    check_output("AdaptiveMaxPool2d", value);
}
Tensor AdaptiveMaxPool2dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return adaptive_max_pool2d(x, output_size, where);
}
std::string AdaptiveMaxPool2dImpl::extra() const { return describe(output_size); }

}  // namespace brigade::nn
