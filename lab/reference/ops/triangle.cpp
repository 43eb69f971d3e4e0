// Tril and triu by name, for `brigade check`.
#include <brigade/autograd/ops/triangle.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_triangle{
    {"tril",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("diagonal") ? tril(in[0], args.integer("diagonal")) : tril(in[0]);
     }},
    {"triu",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("diagonal") ? triu(in[0], args.integer("diagonal")) : triu(in[0]);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
