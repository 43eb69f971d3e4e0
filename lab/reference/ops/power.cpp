// Powers, atan2 and remainders by name, for `brigade check`.
#include <brigade/autograd/ops/power.h>
#include <brigade/lab/reference/operation.h>
#include <brigade/lab/reference/ops/detail.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_power{
    {"pow",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("exponent") ? brigade::pow(in[0], args.scalar("exponent")) : brigade::pow(in[0], in[1]);
     }},
    {"rpow",
     [](const Inputs& in, const Arguments& args) -> Outputs { return brigade::pow(args.scalar("base"), in[0]); }},
    {"atan2", &binary<&brigade::atan2>},
    {"remainder",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("other") ? remainder(in[0], args.scalar("other")) : remainder(in[0], in[1]);
     }},
    {"fmod",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("other") ? fmod(in[0], args.scalar("other")) : fmod(in[0], in[1]);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
