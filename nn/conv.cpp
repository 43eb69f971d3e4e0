// Parameters, forward and printed options of Conv1d and Conv2d.
#include <brigade/nn/conv.h>

#include <brigade/core/factory.h>
#include <brigade/nn/detail/conv.h>
#include <brigade/nn/init.h>

namespace brigade::nn {

namespace {

detail::ConvDescription describe(const Conv1dImpl& m) {
  const Conv1dParams& p = m.params;
  return {"Conv1d",     m.in_channels, m.out_channels, {m.kernel_size}, {p.stride}, {p.padding.values()[0]},
          {p.dilation}, {0},           p.groups,       p.padding.word()};
}

detail::ConvDescription describe(const Conv2dImpl& m) {
  using detail::shape_of;
  const Conv2dParams& p = m.params;
  return {"Conv2d",
          m.in_channels,
          m.out_channels,
          shape_of(m.kernel_size),
          shape_of(p.stride),
          shape_of(p.padding.values()),
          shape_of(p.dilation),
          {0, 0},
          p.groups,
          p.padding.word()};
}

}  // namespace

Conv1dImpl::Conv1dImpl(int64_t in, int64_t out, int64_t kernel, const Conv1dOptions& o)
    : in_channels(in), out_channels(out), kernel_size(kernel), params{o.stride, o.padding, o.dilation, o.groups} {
  describe(*this).check();
  weight = register_parameter("weight", empty({out, in / o.groups, kernel}, o.dtype));
  if (o.bias) bias = register_parameter("bias", empty({out}, o.dtype));
  init::reset_parameters(weight, bias);
}

Tensor Conv1dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return conv1d(x, weight, bias, params, where);
}

std::string Conv1dImpl::extra() const { return describe(*this).text(bias.defined()); }

Conv2dImpl::Conv2dImpl(int64_t in, int64_t out, Size2 kernel, const Conv2dOptions& o)
    : Conv2dImpl(in, out, kernel, Conv2dParams{o.stride, o.padding, o.dilation, o.groups}, o.bias, o.dtype) {}

Conv2dImpl::Conv2dImpl(int64_t in, int64_t out, Size2 kernel, const Conv2dParams& p, bool with_bias, DType dtype)
    : in_channels(in), out_channels(out), kernel_size(kernel), params(p) {
  describe(*this).check();
  weight = register_parameter("weight", empty({out, in / p.groups, kernel[0], kernel[1]}, dtype));
  if (with_bias) bias = register_parameter("bias", empty({out}, dtype));
  init::reset_parameters(weight, bias);
}

Tensor Conv2dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return conv2d(x, weight, bias, params, where);
}

std::string Conv2dImpl::extra() const { return describe(*this).text(bias.defined()); }

}  // namespace brigade::nn
