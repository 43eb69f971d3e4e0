// Layer and RMS norm by name, for `brigade check`.
#include <brigade/autograd/ops/layer_norm.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

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

}  // namespace

}  // namespace brigade::lab::reference
