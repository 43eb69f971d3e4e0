// In-place operations on a result, by name, for `brigade check`. Each returns the changed result times the original
// input.
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {
namespace {

Tensor result_of(const Inputs& in) { return in[0] * 1.0; }

const AddOperations add_inplace{
    {"add_",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const Tensor x = result_of(in);
       return (args.has("alpha") ? x.add_(in[1], args.scalar("alpha")) : x.add_(in[1])) * in[0];
     }},
    {"sub_",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const Tensor x = result_of(in);
       return (args.has("alpha") ? sub_(x, in[1], args.scalar("alpha")) : sub_(x, in[1])) * in[0];
     }},
    {"mul_",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const Tensor x = result_of(in);
       return (args.has("other") ? x.mul_(args.scalar("other")) : x.mul_(in[1])) * in[0];
     }},
    {"div_",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const Tensor x = result_of(in);
       return (args.has("other") ? div_(x, args.scalar("other")) : div_(x, in[1])) * in[0];
     }},
    {"copy_", [](const Inputs& in, const Arguments&) -> Outputs { return result_of(in).copy_(in[1]) * in[0]; }},
    {"fill_",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return result_of(in).fill_(args.scalar("value")) * in[0];
     }},
    {"zero_", [](const Inputs& in, const Arguments&) -> Outputs { return result_of(in).zero_() * in[0]; }},
    {"neg_", [](const Inputs& in, const Arguments&) -> Outputs { return neg_(result_of(in)) * in[0]; }},
    {"exp_", [](const Inputs& in, const Arguments&) -> Outputs { return exp_(result_of(in)) * in[0]; }},
    {"sqrt_", [](const Inputs& in, const Arguments&) -> Outputs { return sqrt_(result_of(in)) * in[0]; }},
    {"relu_", [](const Inputs& in, const Arguments&) -> Outputs { return relu_(result_of(in)) * in[0]; }},
    {"leaky_relu_",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return leaky_relu_(result_of(in), args.number("negative_slope")) * in[0];
     }},
    {"sigmoid_", [](const Inputs& in, const Arguments&) -> Outputs { return sigmoid_(result_of(in)) * in[0]; }},
    {"tanh_", [](const Inputs& in, const Arguments&) -> Outputs { return tanh_(result_of(in)) * in[0]; }},
    // A write through a view reaches its base.
    {"write_to_row",
     [](const Inputs& in, const Arguments&) -> Outputs {
       const Tensor x = result_of(in);
       x.select(0, 1).mul_(in[1]);
       return x * in[0];
     }},
    // A write to a base reaches a view that was taken earlier.
    {"write_to_base",
     [](const Inputs& in, const Arguments&) -> Outputs {
       const Tensor x = result_of(in);
       const Tensor column = x.select(1, 1);
       x.mul_(in[1]);
       return column * in[0].select(1, 0);
     }},
};

}  // namespace
}  // namespace brigade::lab::reference
