#include <brigade/autograd/ops/conv.h>
#include <brigade/autograd/ops/interpolate.h>
#include <brigade/autograd/ops/pool.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

// PyTorch's stride is the window's size unless given.
Pool2dParams pool2d_params(const Arguments& args) {
  Pool2dParams params;
  args.set("kernel_size", params.kernel_size);
  params.stride = params.kernel_size;
  args.set("stride", params.stride);
  args.set("padding", params.padding);
  args.set("ceil_mode", params.ceil_mode);
  args.set("count_include_pad", params.count_include_pad);
  return params;
}

const AddOperations add_image{
    {"conv2d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       Conv2dParams params;
       std::array<int64_t, 2> padding{};
       args.set("stride", params.stride);
       args.set("padding", padding);
       params.padding = padding;
       args.set("dilation", params.dilation);
       args.set("groups", params.groups);
       return conv2d(in[0], in[1], in[2], params);
     }},
    {"max_pool2d",
     [](const Inputs& in, const Arguments& args) -> Outputs { return max_pool2d(in[0], pool2d_params(args)); }},
    {"avg_pool2d",
     [](const Inputs& in, const Arguments& args) -> Outputs { return avg_pool2d(in[0], pool2d_params(args)); }},
    {"interpolate",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       InterpolateOptions options;
       if (args.has("size")) {
         const Shape size = args.shape("size");
         options.size = {size[0], size[1]};
       }
       if (args.has("scale_factor")) {
         const std::vector<double> factors = args.numbers("scale_factor");
         options.scale_factor = {factors.at(0), factors.at(1)};
       }
       if (args.text("mode") == "bilinear") options.mode = InterpolateMode::Bilinear;
       args.set("align_corners", options.align_corners);
       return interpolate(in[0], options);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
