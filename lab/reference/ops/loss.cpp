// The losses of binary targets, differences and distributions by name, for `brigade check`.
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

}  // namespace

}  // namespace brigade::lab::reference
