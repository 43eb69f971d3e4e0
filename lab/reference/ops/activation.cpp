// Relu, leaky_relu, gelu, tanh, sigmoid and silu by name, for `brigade check`.
#include <brigade/autograd/ops/activation.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_activation{
    {"relu", [](const Inputs& in, const Arguments&) -> Outputs { return relu(in[0]); }},
    {"leaky_relu",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("negative_slope") ? leaky_relu(in[0], args.number("negative_slope")) : leaky_relu(in[0]);
     }},
    {"gelu",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("approximate") && args.text("approximate") == "tanh" ? gelu(in[0], GeluApproximation::Tanh)
                                                                            : gelu(in[0]);
     }},
    {"tanh", [](const Inputs& in, const Arguments&) -> Outputs { return brigade::tanh(in[0]); }},
    {"sigmoid", [](const Inputs& in, const Arguments&) -> Outputs { return sigmoid(in[0]); }},
    {"silu", [](const Inputs& in, const Arguments&) -> Outputs { return silu(in[0]); }},
};

}  // namespace

}  // namespace brigade::lab::reference
