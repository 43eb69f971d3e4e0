// Losses by name, for `brigade check`.
#include <brigade/autograd/ops/loss.h>
#include <brigade/lab/reference/operation.h>
#include <brigade/lab/reference/ops/detail.h>

namespace brigade::lab::reference {
namespace {

KLDivReduction kl_div_reduction(const Arguments& args) {
  if (args.has("reduction") && args.text("reduction") == "batchmean") return KLDivReduction::BatchMean;
  switch (reduction(args)) {
    case Reduction::None: return KLDivReduction::None;
    case Reduction::Sum: return KLDivReduction::Sum;
    case Reduction::Mean: break;
  }
  return KLDivReduction::Mean;
}

const AddOperations add_loss{
    {"binary_cross_entropy_with_logits",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       if (in.size() == 2) return binary_cross_entropy_with_logits(in[0], in[1], reduction(args));
       BCEWithLogitsLossOptions options;
       options.weight = in.optional(2);
       options.pos_weight = in.optional(3);
       options.reduction = reduction(args);
       return binary_cross_entropy_with_logits(in[0], in[1], options);
     }},
    {"binary_cross_entropy",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       if (in.size() == 2) return binary_cross_entropy(in[0], in[1], reduction(args));
       BCELossOptions options;
       options.weight = in.optional(2);
       options.reduction = reduction(args);
       return binary_cross_entropy(in[0], in[1], options);
     }},
    {"mse_loss",
     [](const Inputs& in, const Arguments& args) -> Outputs { return mse_loss(in[0], in[1], reduction(args)); }},
    {"l1_loss",
     [](const Inputs& in, const Arguments& args) -> Outputs { return l1_loss(in[0], in[1], reduction(args)); }},
    {"smooth_l1_loss",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("beta") ? smooth_l1_loss(in[0], in[1], reduction(args), args.number("beta"))
                               : smooth_l1_loss(in[0], in[1], reduction(args));
     }},
    {"huber_loss",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("delta") ? huber_loss(in[0], in[1], reduction(args), args.number("delta"))
                                : huber_loss(in[0], in[1], reduction(args));
     }},
    {"kl_div",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return kl_div(in[0], in[1], kl_div_reduction(args), args.flag("log_target", false));
     }},
};

const AddOperations add_likelihood_loss{
    {"poisson_nll_loss",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       PoissonNLLLossOptions options;
       args.set("log_input", options.log_input);
       args.set("full", options.full);
       options.reduction = reduction(args);
       return poisson_nll_loss(in[0], in[1], options);
     }},
    {"gaussian_nll_loss",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       GaussianNLLLossOptions options;
       args.set("full", options.full);
       options.reduction = reduction(args);
       return gaussian_nll_loss(in[0], in[1], in[2], options);
     }},
};

const AddOperations add_margin_loss{
    {"hinge_embedding_loss",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return hinge_embedding_loss(in[0], in[1], args.number("margin", 1), reduction(args));
     }},
    {"margin_ranking_loss",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return margin_ranking_loss(in[0], in[1], in[2], args.number("margin", 0), reduction(args));
     }},
    {"cosine_embedding_loss",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return cosine_embedding_loss(in[0], in[1], in[2], args.number("margin", 0), reduction(args));
     }},
    {"soft_margin_loss",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return soft_margin_loss(in[0], in[1], reduction(args));
     }},
    {"triplet_margin_loss",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       TripletMarginLossOptions options;
       args.set("margin", options.margin);
       args.set("p", options.p);
       args.set("swap", options.swap);
       options.reduction = reduction(args);
       return triplet_margin_loss(in[0], in[1], in[2], options);
     }},
};

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
