// Interpolate with its modes by name, for `brigade check`.
#include <brigade/autograd/ops/interpolate.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

InterpolateMode mode(const std::string& name) {
  if (name == "nearest") return InterpolateMode::Nearest;
  if (name == "linear") return InterpolateMode::Linear;
  if (name == "bilinear") return InterpolateMode::Bilinear;
  if (name == "bicubic") return InterpolateMode::Bicubic;
  throw ValueError("argument 'mode': expected nearest, linear, bilinear or bicubic, got '{}'", name);
}

const AddOperations add_interpolate{
    {"interpolate",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       InterpolateOptions options;
       if (args.has("size")) options.size = args.shape("size");
       if (args.has("scale_factor")) options.scale_factor = args.numbers("scale_factor");
       if (args.has("mode")) options.mode = mode(args.text("mode"));
       args.set("align_corners", options.align_corners);
       return interpolate(in[0], options);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
