// Matrix products, linear layers and attention by name, for `brigade check`.
#include <brigade/autograd/ops/attention.h>
#include <brigade/autograd/ops/matmul.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_matmul{
    {"matmul", [](const Inputs& in, const Arguments&) -> Outputs { return matmul(in[0], in[1]); }},
    {"mm", [](const Inputs& in, const Arguments&) -> Outputs { return mm(in[0], in[1]); }},
    {"bmm", [](const Inputs& in, const Arguments&) -> Outputs { return bmm(in[0], in[1]); }},
    {"linear", [](const Inputs& in, const Arguments&) -> Outputs { return linear(in[0], in[1], in[2]); }},
    {"linear_relu", [](const Inputs& in, const Arguments&) -> Outputs { return linear_relu(in[0], in[1], in[2]); }},
    {"linear_gelu", [](const Inputs& in, const Arguments&) -> Outputs { return linear_gelu(in[0], in[1], in[2]); }},
    {"scaled_dot_product_attention",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const std::optional<double> scale = args.has("scale") ? std::optional(args.number("scale")) : std::nullopt;
       return scaled_dot_product_attention(in[0], in[1], in[2], in.optional(3), 0, args.flag("is_causal", false),
                                           scale);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
