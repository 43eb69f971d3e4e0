// Products of matrices and vectors, einsum and attention by name, for `brigade check`.
#include <brigade/autograd/ops/attention.h>
#include <brigade/autograd/ops/matmul.h>
#include <brigade/lab/reference/operation.h>

#include <optional>

namespace brigade::lab::reference {
namespace {

const AddOperations add_matmul{
    {"matmul", [](const Inputs& in, const Arguments&) -> Outputs { return matmul(in[0], in[1]); }},
    {"mm", [](const Inputs& in, const Arguments&) -> Outputs { return mm(in[0], in[1]); }},
    {"bmm", [](const Inputs& in, const Arguments&) -> Outputs { return bmm(in[0], in[1]); }},
    {"linear", [](const Inputs& in, const Arguments&) -> Outputs { return linear(in[0], in[1], in[2]); }},
    {"linear_relu", [](const Inputs& in, const Arguments&) -> Outputs { return linear_relu(in[0], in[1], in[2]); }},
    {"linear_gelu", [](const Inputs& in, const Arguments&) -> Outputs { return linear_gelu(in[0], in[1], in[2]); }},
};

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

const AddOperations add_einsum{
    {"einsum",
     [](const Inputs& in, const Arguments& args) -> Outputs { return einsum(args.text("equation"), in.all()); }},
};

const AddOperations add_attention{
    {"scaled_dot_product_attention",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const std::optional<double> scale = args.has("scale") ? std::optional(args.number("scale")) : std::nullopt;
       return scaled_dot_product_attention(in[0], in[1], in[2], in.optional(3), 0, args.flag("is_causal", false), scale,
                                           args.flag("enable_gqa", false));
     }},
};

}  // namespace
}  // namespace brigade::lab::reference
