// Sorts and topk by name, for `brigade check`.
#include <brigade/autograd/ops/sort.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

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
