#include <brigade/nn/pooling.h>

namespace brigade::nn {

namespace {

void check(const char* layer, const Pool2dParams& p) {
  for (size_t d = 0; d < 2; ++d) {
    if (p.kernel_size[d] >= 1 && p.stride[d] >= 1) continue;
    throw ValueError(std::string(layer) + ": kernel_size and stride must be at least 1, got " +
                     to_string(Size2(p.kernel_size)) + " and " + to_string(Size2(p.stride)));
  }
}

std::string describe(const Pool2dParams& p) {
  return "kernel_size=" + to_string(Size2(p.kernel_size)) + ", stride=" + to_string(Size2(p.stride)) +
         ", padding=" + to_string(Size2(p.padding));
}

}  // namespace

MaxPool2dImpl::MaxPool2dImpl(Size2 kernel_size, const MaxPool2dOptions& o)
    : MaxPool2dImpl(Pool2dParams{kernel_size, o.stride.value_or(kernel_size), o.padding, o.ceil_mode, true}) {}
MaxPool2dImpl::MaxPool2dImpl(const Pool2dParams& p) : params(p) { check("MaxPool2d", p); }
Tensor MaxPool2dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return max_pool2d(x, params, where);
}
std::string MaxPool2dImpl::extra() const { return describe(params); }

AvgPool2dImpl::AvgPool2dImpl(Size2 kernel_size, const AvgPool2dOptions& o)
    : AvgPool2dImpl(
          Pool2dParams{kernel_size, o.stride.value_or(kernel_size), o.padding, o.ceil_mode, o.count_include_pad}) {}
AvgPool2dImpl::AvgPool2dImpl(const Pool2dParams& p) : params(p) { check("AvgPool2d", p); }
Tensor AvgPool2dImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return avg_pool2d(x, params, where);
}
std::string AvgPool2dImpl::extra() const { return describe(params); }

}  // namespace brigade::nn
