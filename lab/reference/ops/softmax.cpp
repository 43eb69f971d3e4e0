// Softmax, softmin and log_softmax by name, for `brigade check`.
#include <brigade/autograd/ops/softmax.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_softmax{
    {"softmax", [](const Inputs& in, const Arguments& args) -> Outputs { return softmax(in[0], args.integer("dim")); }},
    {"softmin", [](const Inputs& in, const Arguments& args) -> Outputs { return softmin(in[0], args.integer("dim")); }},
    {"log_softmax",
     [](const Inputs& in, const Arguments& args) -> Outputs { return log_softmax(in[0], args.integer("dim")); }},
};

}  // namespace

}  // namespace brigade::lab::reference
