// Cross entropy and nll_loss with their options by name, for `brigade check`.
#include <brigade/autograd/ops/cross_entropy.h>
#include <brigade/lab/reference/operation.h>
#include <brigade/lab/reference/ops/detail.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_cross_entropy{
    {"cross_entropy",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       if (in.size() == 2 && !args.has("label_smoothing")) {
         return args.has("ignore_index") ? cross_entropy(in[0], in[1], reduction(args), args.integer("ignore_index"))
                                         : cross_entropy(in[0], in[1], reduction(args));
       }
       CrossEntropyLossOptions options;
       options.weight = in.optional(2);
       options.reduction = reduction(args);
       args.set("ignore_index", options.ignore_index);
       args.set("label_smoothing", options.label_smoothing);
       return cross_entropy(in[0], in[1], options);
     }},
    {"nll_loss",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       if (in.size() == 2 && !args.has("ignore_index")) return nll_loss(in[0], in[1], reduction(args));
       NLLLossOptions options;
       options.weight = in.optional(2);
       options.reduction = reduction(args);
       args.set("ignore_index", options.ignore_index);
       return nll_loss(in[0], in[1], options);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
