// Parameters, forward and printed options of Conv1d and Conv2d.
#include <brigade/nn/conv.h>

#include <brigade/core/factory.h>
#include <brigade/nn/detail/conv.h>
#include <brigade/nn/init.h>

namespace brigade::nn {
namespace {

detail::ConvDescription describe(const Conv1dImpl& m) {
  const Conv1dOptions& o = m.options;
  return {"Conv1d",     m.in_channels, m.out_channels, {m.kernel_size}, {o.stride}, {o.padding.values()[0]},
          {o.dilation}, {0},           o.groups,       o.padding.word()};
}

detail::ConvDescription describe(const Conv2dImpl& m) {
  using detail::shape_of;
  const Conv2dOptions& o = m.options;
  return {"Conv2d",
          m.in_channels,
          m.out_channels,
          shape_of(m.kernel_size),
          shape_of(o.stride),
          shape_of(o.padding.values()),
          shape_of(o.dilation),
          {0, 0},
          o.groups,
          o.padding.word()};
}

}  // namespace

Conv1dImpl::Conv1dImpl(int64_t in, int64_t out, int64_t kernel, const Conv1dOptions& o)
    : in_channels(in), out_channels(out), kernel_size(kernel), options(o) {
  describe(*this).check();
  weight = register_parameter("weight", empty({out, in / o.groups, kernel}, o.dtype));
  if (o.bias) bias = register_parameter("bias", empty({out}, o.dtype));
  init::reset_parameters(weight, bias);
}

Tensor Conv1dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return conv1d(x, weight, bias, options, where);
}

std::string Conv1dImpl::extra() const { return describe(*this).text(bias.defined()); }

Conv2dImpl::Conv2dImpl(int64_t in, int64_t out, Size2 kernel, const Conv2dOptions& o)
    : in_channels(in), out_channels(out), kernel_size(kernel), options(o) {
  describe(*this).check();
  weight = register_parameter("weight", empty({out, in / o.groups, kernel[0], kernel[1]}, o.dtype));
  if (o.bias) bias = register_parameter("bias", empty({out}, o.dtype));
  init::reset_parameters(weight, bias);
}

Tensor Conv2dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return conv2d(x, weight, bias, options, where);
}

std::string Conv2dImpl::extra() const { return describe(*this).text(bias.defined()); }

}  // namespace brigade::nn
