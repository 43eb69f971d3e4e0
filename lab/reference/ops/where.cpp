// Where and masked_fill by name, for `brigade check`.
#include <brigade/autograd/ops/where.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_where{
    {"where",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("other") ? where(in[0], in[1], args.scalar("other")) : where(in[0], in[1], in[2]);
     }},
    {"masked_fill",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return masked_fill(in[0], in[1], args.scalar("value"));
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
