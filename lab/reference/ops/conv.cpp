// Convolutions, unfold, fold and pixel shuffles by name, for `brigade check`.
#include <brigade/autograd/ops/conv.h>
#include <brigade/autograd/ops/fold.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

// A number for each dimension, or a word.
template <size_t spatial>
void set_padding(const Arguments& args, ConvPadding<spatial>& padding) {
  if (!args.has("padding")) return;
  if (args.is_text("padding")) {
    padding = args.text("padding") == "same" ? ConvPadding<spatial>("same") : ConvPadding<spatial>("valid");
    return;
  }
  std::array<int64_t, spatial> values{};
  args.set("padding", values);
  padding = values;
}

template <class Params>
Params conv_params(const Arguments& args) {
  Params params;
  args.set("stride", params.stride);
  args.set("dilation", params.dilation);
  args.set("groups", params.groups);
  if constexpr (requires { params.output_padding; }) {
    args.set("padding", params.padding);
    args.set("output_padding", params.output_padding);
  } else {
    set_padding(args, params.padding);
  }
  return params;
}

FoldParams fold_params(const Arguments& args) {
  FoldParams params;
  args.set("kernel_size", params.kernel_size);
  args.set("dilation", params.dilation);
  args.set("padding", params.padding);
  args.set("stride", params.stride);
  return params;
}

const AddOperations add_convolution{
    {"conv1d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return conv1d(in[0], in[1], in[2], conv_params<Conv1dParams>(args));
     }},
    {"conv2d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return conv2d(in[0], in[1], in[2], conv_params<Conv2dParams>(args));
     }},
    {"conv_transpose1d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return conv_transpose1d(in[0], in[1], in[2], conv_params<ConvTranspose1dParams>(args));
     }},
    {"conv_transpose2d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return conv_transpose2d(in[0], in[1], in[2], conv_params<ConvTranspose2dParams>(args));
     }},
    {"unfold", [](const Inputs& in, const Arguments& args) -> Outputs { return unfold(in[0], fold_params(args)); }},
    {"fold",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       std::array<int64_t, 2> size{};
       args.set("output_size", size);
       return fold(in[0], size, fold_params(args));
     }},
    {"pixel_shuffle",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return pixel_shuffle(in[0], args.integer("upscale_factor"));
     }},
    {"pixel_unshuffle",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return pixel_unshuffle(in[0], args.integer("downscale_factor"));
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
