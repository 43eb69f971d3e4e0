// Scaled dot-product attention by name, for `brigade check`.
#include <brigade/autograd/ops/attention.h>
#include <brigade/lab/reference/operation.h>

#include <optional>

namespace brigade::lab::reference {

namespace {

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
