// Sums, means, maxima, minima and softmax by name, for `brigade check`.
#include <brigade/autograd/ops/extremes.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/ops/softmax.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

bool keepdim(const Arguments& args) { return args.flag("keepdim", false); }

const AddOperations add_reduce{
    {"sum",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? sum(in[0], args.shape("dim"), keepdim(args)) : sum(in[0]);
     }},
    {"mean",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? mean(in[0], args.shape("dim"), keepdim(args)) : mean(in[0]);
     }},
    {"max",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       if (!args.has("dim")) return brigade::max(in[0]);
       const MinMax found = brigade::max(in[0], args.integer("dim"), keepdim(args));
       return {found.values, found.indices};
     }},
    {"min",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       if (!args.has("dim")) return brigade::min(in[0]);
       const MinMax found = brigade::min(in[0], args.integer("dim"), keepdim(args));
       return {found.values, found.indices};
     }},
    {"argmax",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? argmax(in[0], args.integer("dim"), keepdim(args)) : argmax(in[0]);
     }},
    {"sum_to", [](const Inputs& in, const Arguments& args) -> Outputs { return sum_to(in[0], args.shape("shape")); }},
    {"softmax", [](const Inputs& in, const Arguments& args) -> Outputs { return softmax(in[0], args.integer("dim")); }},
    {"softmin", [](const Inputs& in, const Arguments& args) -> Outputs { return softmin(in[0], args.integer("dim")); }},
    {"log_softmax",
     [](const Inputs& in, const Arguments& args) -> Outputs { return log_softmax(in[0], args.integer("dim")); }},
};

}  // namespace

}  // namespace brigade::lab::reference
