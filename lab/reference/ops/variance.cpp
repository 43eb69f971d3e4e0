// Variances and standard deviations by name, for `brigade check`.
#include <brigade/autograd/ops/variance.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

// Calls `reduce` without further arguments, or with dimensions, correction and keepdim.
template <class Reduce>
Outputs spread(const Inputs& in, const Arguments& args, Reduce reduce) {
  return args.has("dim") ? reduce(in[0], args.shape("dim"), args.number("correction", 1), args.flag("keepdim", false))
                         : reduce(in[0]);
}
Outputs both(const SpreadAndMean& found) { return {found.spread, found.mean}; }

const AddOperations add_variance{
    {"var",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return spread(in, args, [](auto&&... a) -> Outputs { return var(a...); });
     }},
    {"std",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return spread(in, args, [](auto&&... a) -> Outputs { return brigade::std(a...); });
     }},
    {"var_mean",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return spread(in, args, [](auto&&... a) -> Outputs { return both(var_mean(a...)); });
     }},
    {"std_mean",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return spread(in, args, [](auto&&... a) -> Outputs { return both(std_mean(a...)); });
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
