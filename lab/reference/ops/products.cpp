// Products of vectors and matrices, einsum and norms by name, for `brigade check`.
#include <brigade/autograd/ops/einsum.h>
#include <brigade/autograd/ops/norm.h>
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

const AddOperations add_linalg{
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
    {"einsum",
     [](const Inputs& in, const Arguments& args) -> Outputs { return einsum(args.text("equation"), in.all()); }},
    {"norm",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("p") ? norm(in[0], args.number("p"), args.shape("dim", {}), args.flag("keepdim", false))
                            : norm(in[0]);
     }},
    {"vector_norm",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("ord") ? vector_norm(in[0], args.number("ord"), args.shape("dim"), args.flag("keepdim"))
                              : vector_norm(in[0]);
     }},
    {"matrix_norm",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? matrix_norm(in[0], args.shape("dim"), args.flag("keepdim")) : matrix_norm(in[0]);
     }},
    {"normalize",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("p") ? normalize(in[0], args.number("p"), args.integer("dim")) : normalize(in[0]);
     }},
    {"cosine_similarity",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? cosine_similarity(in[0], in[1], args.integer("dim")) : cosine_similarity(in[0], in[1]);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
