// Maxima, minima and their indices by name, for `brigade check`.
#include <brigade/autograd/ops/extremes.h>
#include <brigade/lab/reference/operation.h>
#include <brigade/lab/reference/ops/detail.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_extremes{
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
    {"amax",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return reduced(in, args, [](auto&&... a) -> Outputs { return amax(a...); });
     }},
    {"amin",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return reduced(in, args, [](auto&&... a) -> Outputs { return amin(a...); });
     }},
    {"argmin",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? argmin(in[0], args.integer("dim"), args.flag("keepdim", false)) : argmin(in[0]);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
