// Variances, products, logsumexp, counts and extremes by name, for `brigade check`.
#include <brigade/autograd/ops/extremes.h>
#include <brigade/autograd/ops/reduce.h>
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

// The same with dimensions and keepdim.
template <class Reduce>
Outputs reduced(const Inputs& in, const Arguments& args, Reduce reduce) {
  return args.has("dim") ? reduce(in[0], args.shape("dim"), args.flag("keepdim", false)) : reduce(in[0]);
}

const AddOperations add_statistics{
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
    {"prod",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return reduced(in, args, [](auto&&... a) -> Outputs { return prod(a...); });
     }},
    {"logsumexp",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return reduced(in, args, [](auto&&... a) -> Outputs { return logsumexp(a...); });
     }},
    {"amax",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return reduced(in, args, [](auto&&... a) -> Outputs { return amax(a...); });
     }},
    {"amin",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return reduced(in, args, [](auto&&... a) -> Outputs { return amin(a...); });
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
    {"argmin",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? argmin(in[0], args.integer("dim"), args.flag("keepdim", false)) : argmin(in[0]);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
