// Lerp, addcmul and addcdiv by name, for `brigade check`.
#include <brigade/autograd/ops/ternary.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_ternary{
    {"lerp",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("weight") ? brigade::lerp(in[0], in[1], args.number("weight"))
                                 : brigade::lerp(in[0], in[1], in[2]);
     }},
    {"addcmul",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("value") ? addcmul(in[0], in[1], in[2], args.number("value")) : addcmul(in[0], in[1], in[2]);
     }},
    {"addcdiv",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("value") ? addcdiv(in[0], in[1], in[2], args.number("value")) : addcdiv(in[0], in[1], in[2]);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
