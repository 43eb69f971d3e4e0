// Elu, softplus, hardtanh, prelu, glu and their relatives by name, for `brigade check`.
#include <brigade/autograd/ops/parametric_activation.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

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

}  // namespace

}  // namespace brigade::lab::reference
