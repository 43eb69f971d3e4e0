// Max, average and adaptive pooling by name, for `brigade check`.
#include <brigade/autograd/ops/pool.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

template <class Params>
Params pool_params(const Arguments& args) {
  Params params;
  args.set("kernel_size", params.kernel_size);
  args.set("stride", params.stride);
  args.set("padding", params.padding);
  args.set("dilation", params.dilation);
  args.set("ceil_mode", params.ceil_mode);
  args.set("count_include_pad", params.count_include_pad);
  if constexpr (requires { params.divisor_override; }) {
    if (args.has("divisor_override")) params.divisor_override = args.integer("divisor_override");
  }
  return params;
}

PoolOutputSize output_size(const Arguments& args) {
  const Shape size = args.shape("output_size");
  return {size[0], size[1]};
}

Outputs both(const MaxPoolResult& found) { return {found.values, found.indices}; }

const AddOperations add_pooling{
    {"max_pool2d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return max_pool2d(in[0], pool_params<Pool2dParams>(args));
     }},
    {"max_pool2d_with_indices",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return both(max_pool2d_with_indices(in[0], pool_params<Pool2dParams>(args)));
     }},
    {"max_pool1d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return max_pool1d(in[0], pool_params<Pool1dParams>(args));
     }},
    {"max_pool1d_with_indices",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return both(max_pool1d_with_indices(in[0], pool_params<Pool1dParams>(args)));
     }},
    {"avg_pool2d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return avg_pool2d(in[0], pool_params<Pool2dParams>(args));
     }},
    {"avg_pool1d",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return avg_pool1d(in[0], pool_params<Pool1dParams>(args));
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
