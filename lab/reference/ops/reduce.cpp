// Sums, means, products, logsumexp and counts by name, for `brigade check`.
#include <brigade/autograd/ops/reduce.h>
#include <brigade/lab/reference/operation.h>
#include <brigade/lab/reference/ops/detail.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_reduce{
    {"sum",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? sum(in[0], args.shape("dim"), keepdim(args)) : sum(in[0]);
     }},
    {"mean",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? mean(in[0], args.shape("dim"), keepdim(args)) : mean(in[0]);
     }},
    {"sum_to", [](const Inputs& in, const Arguments& args) -> Outputs { return sum_to(in[0], args.shape("shape")); }},
    {"prod",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return reduced(in, args, [](auto&&... a) -> Outputs { return prod(a...); });
     }},
    {"logsumexp",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return reduced(in, args, [](auto&&... a) -> Outputs { return logsumexp(a...); });
     }},
    {"any",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return reduced(in, args, [](auto&&... a) -> Outputs { return any(a...); });
     }},
    {"all",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return reduced(in, args, [](auto&&... a) -> Outputs { return all(a...); });
     }},
    {"count_nonzero",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? count_nonzero(in[0], args.shape("dim")) : count_nonzero(in[0]);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
