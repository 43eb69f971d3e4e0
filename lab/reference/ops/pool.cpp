// Max, average and adaptive pooling by name, for `brigade check`.
#include <brigade/autograd/ops/pool.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

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

}  // namespace

}  // namespace brigade::lab::reference
