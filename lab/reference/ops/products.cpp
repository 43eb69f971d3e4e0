// Products of vectors and matrices by name, for `brigade check`.
#include <brigade/autograd/ops/products.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

using Product = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, double, double, SourceLocation);

// beta * input + alpha * product
template <Product product>
Outputs added(const Inputs& in, const Arguments& args) {
  return product(in[0], in[1], in[2], args.number("beta", 1), args.number("alpha", 1), SourceLocation::current());
}

const AddOperations add_products{
    {"dot", [](const Inputs& in, const Arguments&) -> Outputs { return dot(in[0], in[1]); }},
    {"mv", [](const Inputs& in, const Arguments&) -> Outputs { return mv(in[0], in[1]); }},
    {"outer", [](const Inputs& in, const Arguments&) -> Outputs { return outer(in[0], in[1]); }},
    {"addmm", &added<&addmm>},
    {"addmv", &added<&addmv>},
    {"baddbmm", &added<&baddbmm>},
    {"addbmm", &added<&addbmm>},
    {"bilinear", [](const Inputs& in, const Arguments&) -> Outputs { return bilinear(in[0], in[1], in[2], in[3]); }},
    {"kron", [](const Inputs& in, const Arguments&) -> Outputs { return kron(in[0], in[1]); }},
    {"trace", [](const Inputs& in, const Arguments&) -> Outputs { return trace(in[0]); }},
};

}  // namespace

}  // namespace brigade::lab::reference
