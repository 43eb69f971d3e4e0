// Convolutions, pools, folds, interpolation, embedding and normalization by name, for `brigade check`.
#include <brigade/autograd/ops/conv.h>
#include <brigade/autograd/ops/indexing.h>
#include <brigade/autograd/ops/normalization.h>
#include <brigade/autograd/ops/pool.h>
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

// Reads the window options of a case; sizes are numbers or pairs.
template <class Options>
Options pool_options(const Arguments& args) {
  Options options;
  if (args.has("stride")) {
    typename decltype(options.stride)::value_type stride = 1;
    args.set("stride", stride);
    options.stride = stride;
  }
  args.set("padding", options.padding);
  if constexpr (requires { options.dilation; }) args.set("dilation", options.dilation);
  args.set("ceil_mode", options.ceil_mode);
  if constexpr (requires { options.count_include_pad; }) args.set("count_include_pad", options.count_include_pad);
  if constexpr (requires { options.divisor_override; }) {
    if (args.has("divisor_override")) options.divisor_override = args.integer("divisor_override");
  }
  return options;
}
template <class S>
S kernel_size(const Arguments& args) {
  S size = 1;
  args.set("kernel_size", size);
  return size;
}

PoolOutputSize output_size(const Arguments& args) {
  const Shape size = args.shape("output_size");
  return {size[0], size[1]};
}

Outputs both(const MaxPoolResult& found) { return {found.values, found.indices}; }

const AddOperations add_pooling{
    {"max_pool2d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return max_pool2d(in[0], kernel_size<Size2>(args), pool_options<MaxPool2dOptions>(args));
     }},
    {"max_pool2d_with_indices",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return both(max_pool2d_with_indices(in[0], kernel_size<Size2>(args), pool_options<MaxPool2dOptions>(args)));
     }},
    {"max_pool1d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return max_pool1d(in[0], kernel_size<int64_t>(args), pool_options<MaxPool1dOptions>(args));
     }},
    {"max_pool1d_with_indices",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return both(max_pool1d_with_indices(in[0], kernel_size<int64_t>(args), pool_options<MaxPool1dOptions>(args)));
     }},
    {"avg_pool2d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return avg_pool2d(in[0], kernel_size<Size2>(args), pool_options<AvgPool2dOptions>(args));
     }},
    {"avg_pool1d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return avg_pool1d(in[0], kernel_size<int64_t>(args), pool_options<AvgPool1dOptions>(args));
     }},
    {"adaptive_avg_pool2d",
     [](const Inputs& in, const Arguments& args) -> Outputs { return adaptive_avg_pool2d(in[0], output_size(args)); }},
    {"adaptive_avg_pool1d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return adaptive_avg_pool1d(in[0], args.integer("output_size"));
     }},
    {"adaptive_max_pool2d",
     [](const Inputs& in, const Arguments& args) -> Outputs { return adaptive_max_pool2d(in[0], output_size(args)); }},
    {"adaptive_max_pool1d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return adaptive_max_pool1d(in[0], args.integer("output_size"));
     }},
};

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

const AddOperations add_fold{
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

const AddOperations add_embedding{
    {"embedding",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       if (args.has("scale_grad_by_freq")) return embedding(in[0], in[1], -1, args.flag("scale_grad_by_freq"));
       return args.has("padding_idx") ? embedding(in[0], in[1], args.integer("padding_idx")) : embedding(in[0], in[1]);
     }},
};

const AddOperations add_batch_norm{
    // The updated running statistics are results as well.
    {"batch_norm",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const Tensor mean = in[3].defined() ? in[3].clone() : Tensor();
       const Tensor var = in[4].defined() ? in[4].clone() : Tensor();
       const bool training = args.flag("training");
       std::vector<Tensor> results{args.has("eps") ? batch_norm(in[0], in[1], in[2], mean, var, training,
                                                                args.number("momentum"), args.number("eps"))
                                                   : batch_norm(in[0], in[1], in[2], mean, var, training)};
       for (const Tensor& running : {mean, var})
         if (running.defined()) results.push_back(running);
       return results;
     }},
};

const AddOperations add_layer_norm{
    {"layer_norm",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const Shape shape = args.shape("normalized_shape");
       return args.has("eps") ? layer_norm(in[0], shape, in[1], in[2], args.number("eps"))
                              : layer_norm(in[0], shape, in[1], in[2]);
     }},
    {"rms_norm",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const Shape shape = args.shape("normalized_shape");
       return args.has("eps") ? rms_norm(in[0], shape, in[1], args.number("eps")) : rms_norm(in[0], shape, in[1]);
     }},
};

const AddOperations add_group_norm{
    {"group_norm",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const int64_t groups = args.integer("num_groups");
       return args.has("eps") ? group_norm(in[0], groups, in[1], in[2], args.number("eps"))
                              : group_norm(in[0], groups, in[1], in[2]);
     }},
    {"instance_norm",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const Tensor mean = in[1].defined() ? in[1].clone() : Tensor();
       const Tensor var = in[2].defined() ? in[2].clone() : Tensor();
       std::vector<Tensor> results{
           args.has("eps") ? instance_norm(in[0], mean, var, in[3], in[4], true, 0.1, args.number("eps"))
                           : instance_norm(in[0], mean, var, in[3], in[4], args.flag("use_input_stats", true))};
       for (const Tensor& running : {mean, var})
         if (running.defined()) results.push_back(running);
       return results;
     }},
};

}  // namespace
}  // namespace brigade::lab::reference
