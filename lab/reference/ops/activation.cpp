// Activations, softmax and its relatives by name, for `brigade check`.
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

const AddOperations add_parametric_activation{
    {"elu",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("alpha") ? elu(in[0], args.number("alpha")) : elu(in[0]);
     }},
    {"selu", [](const Inputs& in, const Arguments&) -> Outputs { return selu(in[0]); }},
    {"celu",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("alpha") ? celu(in[0], args.number("alpha")) : celu(in[0]);
     }},
    {"softplus",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("beta") ? softplus(in[0], args.number("beta"), args.number("threshold")) : softplus(in[0]);
     }},
    {"hardtanh",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("min_val") ? hardtanh(in[0], args.number("min_val"), args.number("max_val")) : hardtanh(in[0]);
     }},
    {"relu6", [](const Inputs& in, const Arguments&) -> Outputs { return relu6(in[0]); }},
    {"hardsigmoid", [](const Inputs& in, const Arguments&) -> Outputs { return hardsigmoid(in[0]); }},
    {"hardswish", [](const Inputs& in, const Arguments&) -> Outputs { return hardswish(in[0]); }},
    {"mish", [](const Inputs& in, const Arguments&) -> Outputs { return mish(in[0]); }},
    {"softsign", [](const Inputs& in, const Arguments&) -> Outputs { return softsign(in[0]); }},
    {"logsigmoid", [](const Inputs& in, const Arguments&) -> Outputs { return logsigmoid(in[0]); }},
    {"softshrink",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("lambd") ? softshrink(in[0], args.number("lambd")) : softshrink(in[0]);
     }},
    {"hardshrink",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("lambd") ? hardshrink(in[0], args.number("lambd")) : hardshrink(in[0]);
     }},
    {"prelu", [](const Inputs& in, const Arguments&) -> Outputs { return prelu(in[0], in[1]); }},
    {"glu",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? glu(in[0], args.integer("dim")) : glu(in[0]);
     }},
};

const AddOperations add_softmax{
    {"softmax", [](const Inputs& in, const Arguments& args) -> Outputs { return softmax(in[0], args.integer("dim")); }},
    {"softmin", [](const Inputs& in, const Arguments& args) -> Outputs { return softmin(in[0], args.integer("dim")); }},
    {"log_softmax",
     [](const Inputs& in, const Arguments& args) -> Outputs { return log_softmax(in[0], args.integer("dim")); }},
};

}  // namespace
}  // namespace brigade::lab::reference
