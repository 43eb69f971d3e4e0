// Einsum by name, for `brigade check`.
#include <brigade/autograd/ops/einsum.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_einsum{
    {"einsum",
     [](const Inputs& in, const Arguments& args) -> Outputs { return einsum(args.text("equation"), in.all()); }},
};

}  // namespace

}  // namespace brigade::lab::reference
