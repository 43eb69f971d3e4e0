// In-place steps, on the tensor itself (the table's operations of the same names work on an intermediate result).
#include "differential/step.h"

#include <brigade/autograd/ops/arithmetic.h>

namespace brigade::differential {
namespace {

using Unary = const Tensor& (*)(const Tensor&, SourceLocation);

template <Unary function>
Outputs unary(const Call& call) {
  return function(call.in[0], SourceLocation::current());
}

const AddSteps add_inplace{
    {"add_", [](const Call& call) -> Outputs { return call.in[0].add_(call.in[1], call.args.scalar("alpha", 1)); }},
    {"sub_", [](const Call& call) -> Outputs { return sub_(call.in[0], call.in[1], call.args.scalar("alpha", 1)); }},
    {"mul_",
     [](const Call& call) -> Outputs {
       return call.args.has("other") ? call.in[0].mul_(call.args.scalar("other")) : call.in[0].mul_(call.in[1]);
     }},
    {"div_",
     [](const Call& call) -> Outputs {
       return call.args.has("other") ? div_(call.in[0], call.args.scalar("other")) : div_(call.in[0], call.in[1]);
     }},
    {"copy_", [](const Call& call) -> Outputs { return call.in[0].copy_(call.in[1]); }},
    {"fill_", [](const Call& call) -> Outputs { return call.in[0].fill_(call.args.scalar("value")); }},
    {"zero_", [](const Call& call) -> Outputs { return call.in[0].zero_(); }},
    {"neg_", &unary<&neg_>},
    {"exp_", &unary<&exp_>},
    {"sqrt_", &unary<&sqrt_>},
    {"relu_", &unary<&relu_>},
    {"sigmoid_", &unary<&sigmoid_>},
    {"tanh_", &unary<&tanh_>},
    {"leaky_relu_",
     [](const Call& call) -> Outputs { return leaky_relu_(call.in[0], call.args.number("negative_slope", 0.01)); }},
};

}  // namespace
}  // namespace brigade::differential
