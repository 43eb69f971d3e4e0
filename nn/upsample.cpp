// Checks of size and scale factor, forward and printed options of Upsample.
#include <brigade/nn/upsample.h>

#include <cstdio>

namespace brigade::nn {
namespace {

std::string text(double factor) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", factor);
  return buffer;
}

const char* name_of(InterpolateMode mode) {
  switch (mode) {
    case InterpolateMode::Nearest: return "nearest";
    case InterpolateMode::Linear: return "linear";
    case InterpolateMode::Bilinear: return "bilinear";
    case InterpolateMode::Bicubic: break;
  }
  return "bicubic";
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
    throw ValueError("Upsample: align_corners is for the modes that weigh elements; leave it out for Nearest");
  if (o.size) options.size = Shape{(*o.size)[0], (*o.size)[1]};
  if (o.scale_factor) options.scale_factor = {o.scale_factor->values[0], o.scale_factor->values[1]};
  options.mode = o.mode;
  options.align_corners = o.align_corners;
}

Tensor UpsampleImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  if (x.dim() != 3) return interpolate(x, options, where);
  // Sequences take one number: two equal ones are one.
  InterpolateOptions one = options;
  if (one.size && one.size->front() == one.size->back()) one.size = Shape{one.size->front()};
  if (one.scale_factor && one.scale_factor->front() == one.scale_factor->back()) one.scale_factor->pop_back();
  return interpolate(x, one, where);
}

std::string UpsampleImpl::extra() const {
  std::string how;
  if (options.size) {
    how = "size=[" + std::to_string(options.size->front()) + ", " + std::to_string(options.size->back()) + "]";
  } else {
    how = "scale_factor=[" + text(options.scale_factor->front()) + ", " + text(options.scale_factor->back()) + "]";
  }
  return how + ", mode=" + name_of(options.mode) + (options.align_corners ? ", align_corners=true" : "");
}

}  // namespace brigade::nn
