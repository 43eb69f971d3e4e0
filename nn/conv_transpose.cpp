// Parameters, forward and printed options of ConvTranspose1d and ConvTranspose2d.
#include <brigade/nn/conv_transpose.h>

#include <brigade/core/factory.h>
#include <brigade/nn/detail/conv.h>
#include <brigade/nn/init.h>

namespace brigade::nn {
namespace {

detail::ConvDescription describe(const ConvTranspose1dImpl& m) {
  const ConvTranspose1dOptions& o = m.options;
  return {"ConvTranspose1d", m.in_channels, m.out_channels,     {m.kernel_size}, {o.stride},
          {o.padding},       {o.dilation},  {o.output_padding}, o.groups};
}

detail::ConvDescription describe(const ConvTranspose2dImpl& m) {
  using detail::shape_of;
  const ConvTranspose2dOptions& o = m.options;
  return {"ConvTranspose2d",
          m.in_channels,
          m.out_channels,
          shape_of(m.kernel_size),
          shape_of(o.stride),
          shape_of(o.padding),
          shape_of(o.dilation),
          shape_of(o.output_padding),
          o.groups};
}

}  // namespace

ConvTranspose1dImpl::ConvTranspose1dImpl(int64_t in, int64_t out, int64_t kernel, const ConvTranspose1dOptions& o)
    : in_channels(in), out_channels(out), kernel_size(kernel), options(o) {
  describe(*this).check();
  weight = register_parameter("weight", empty({in, out / o.groups, kernel}, o.dtype));
  if (o.bias) bias = register_parameter("bias", empty({out}, o.dtype));
  init::reset_parameters(weight, bias);
}

Tensor ConvTranspose1dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return conv_transpose1d(x, weight, bias, options, where);
}

std::string ConvTranspose1dImpl::extra() const { return describe(*this).text(bias.defined()); }

ConvTranspose2dImpl::ConvTranspose2dImpl(int64_t in, int64_t out, Size2 kernel, const ConvTranspose2dOptions& o)
    : in_channels(in), out_channels(out), kernel_size(kernel), options(o) {
  describe(*this).check();
  weight = register_parameter("weight", empty({in, out / o.groups, kernel[0], kernel[1]}, o.dtype));
  if (o.bias) bias = register_parameter("bias", empty({out}, o.dtype));
  init::reset_parameters(weight, bias);
}

Tensor ConvTranspose2dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return conv_transpose2d(x, weight, bias, options, where);
}

std::string ConvTranspose2dImpl::extra() const { return describe(*this).text(bias.defined()); }

}  // namespace brigade::nn
