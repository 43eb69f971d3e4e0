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

template <class Options>
Options conv_options(const Arguments& args) {
  Options options;
  args.set("stride", options.stride);
  args.set("dilation", options.dilation);
  args.set("groups", options.groups);
  if constexpr (requires { options.output_padding; }) {
    args.set("padding", options.padding);
    args.set("output_padding", options.output_padding);
  } else {
    set_padding(args, options.padding);
  }
  return options;
}

Size2 size_of(const Arguments& args, const char* name) {
  Size2 size = 1;
  args.set(name, size);
  return size;
}
FoldOptions fold_options(const Arguments& args) {
  FoldOptions options;
  args.set("dilation", options.dilation);
  args.set("padding", options.padding);
  args.set("stride", options.stride);
  return options;
}

const AddOperations add_convolution{
    {"conv1d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return conv1d(in[0], in[1], in[2], conv_options<Conv1dFuncOptions>(args));
     }},
    {"conv2d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return conv2d(in[0], in[1], in[2], conv_options<Conv2dFuncOptions>(args));
     }},
    {"conv_transpose1d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return conv_transpose1d(in[0], in[1], in[2], conv_options<ConvTranspose1dFuncOptions>(args));
     }},
    {"conv_transpose2d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return conv_transpose2d(in[0], in[1], in[2], conv_options<ConvTranspose2dFuncOptions>(args));
     }},
    {"unfold",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return unfold(in[0], size_of(args, "kernel_size"), fold_options(args));
     }},
    {"fold",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return fold(in[0], size_of(args, "output_size"), size_of(args, "kernel_size"), fold_options(args));
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
