// Sums, means, norms, variances, extremes, scans and sorts by name, for `brigade check`.
#include <brigade/autograd/ops/indexing.h>
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

const AddOperations add_norm{
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

const AddOperations add_scan{
    {"cumsum", [](const Inputs& in, const Arguments& args) -> Outputs { return cumsum(in[0], args.integer("dim")); }},
    {"cumprod", [](const Inputs& in, const Arguments& args) -> Outputs { return cumprod(in[0], args.integer("dim")); }},
    {"logcumsumexp",
     [](const Inputs& in, const Arguments& args) -> Outputs { return logcumsumexp(in[0], args.integer("dim")); }},
    {"linear_recurrence",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("reverse") ? linear_recurrence(in[0], in[1], args.integer("dim"), args.flag("reverse"))
                                  : linear_recurrence(in[0], in[1], args.integer("dim"));
     }},
};

Outputs both(const SortResult& found) { return {found.values, found.indices}; }

const AddOperations add_sort{
    {"sort",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return both(sort(in[0], args.integer("dim", -1), args.flag("descending", false), args.flag("stable", false)));
     }},
    {"argsort",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? argsort(in[0], args.integer("dim"), args.flag("descending")) : argsort(in[0]);
     }},
    {"topk",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const int64_t k = args.integer("k");
       return both(args.has("dim") ? topk(in[0], k, args.integer("dim"), args.flag("largest")) : topk(in[0], k));
     }},
};

}  // namespace
}  // namespace brigade::lab::reference
