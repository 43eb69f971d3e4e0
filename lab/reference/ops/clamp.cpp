// Clamps by name, for `brigade check`.
#include <brigade/autograd/ops/clamp.h>
#include <brigade/lab/reference/operation.h>

#include <optional>

namespace brigade::lab::reference {

namespace {

const AddOperations add_clamp{
    {"clamp",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       std::optional<Scalar> low, high;
       if (args.has("min")) low = args.scalar("min");
       if (args.has("max")) high = args.scalar("max");
       return clamp(in[0], low, high);
     }},
    {"clamp_min",
     [](const Inputs& in, const Arguments& args) -> Outputs { return clamp_min(in[0], args.scalar("min")); }},
    {"clamp_max",
     [](const Inputs& in, const Arguments& args) -> Outputs { return clamp_max(in[0], args.scalar("max")); }},
    {"clamp_tensors",
     [](const Inputs& in, const Arguments&) -> Outputs { return clamp(in[0], in[1], in.optional(2)); }},
};

}  // namespace

}  // namespace brigade::lab::reference
