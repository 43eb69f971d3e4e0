// Convolutions by name, for `brigade check`.
#include <brigade/autograd/ops/conv.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

// Padding is a number for each dimension, or a word.
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

const AddOperations add_conv{
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
};

}  // namespace

}  // namespace brigade::lab::reference
