#include <brigade/nn/upsample.h>

#include <cstdio>

namespace brigade::nn {

namespace {

std::string text(double factor) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", factor);
  return buffer;
}

}  // namespace

UpsampleImpl::UpsampleImpl(const UpsampleOptions& o) {
  if (o.size.has_value() == o.scale_factor.has_value())
    throw ValueError(o.size ? "Upsample: expected size or scale_factor, got both"
                            : "Upsample: expected size or scale_factor, got neither");
  if (o.size && ((*o.size)[0] < 1 || (*o.size)[1] < 1))
    throw ValueError("Upsample: a size must be at least 1, got " + to_string(*o.size));
  if (o.scale_factor && !(o.scale_factor->values[0] > 0 && o.scale_factor->values[1] > 0))
    throw ValueError("Upsample: a scale_factor must be above 0, got [" + text(o.scale_factor->values[0]) + ", " +
                     text(o.scale_factor->values[1]) + "]");
  if (o.align_corners && o.mode == InterpolateMode::Nearest)
    throw ValueError("Upsample: align_corners is for Bilinear; leave it out for Nearest");
  if (o.size) options.size = o.size->values;
  if (o.scale_factor) options.scale_factor = o.scale_factor->values;
  options.mode = o.mode;
  options.align_corners = o.align_corners;
}

Tensor UpsampleImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return interpolate(x, options, where);
}

std::string UpsampleImpl::extra() const {
  const std::string how = options.size ? "size=" + to_string(Size2(*options.size))
                                       : "scale_factor=[" + text((*options.scale_factor)[0]) + ", " +
                                             text((*options.scale_factor)[1]) + "]";
  return how + ", mode=" + (options.mode == InterpolateMode::Nearest ? "nearest" : "bilinear") +
         (options.align_corners ? ", align_corners=true" : "");
}

}  // namespace brigade::nn
