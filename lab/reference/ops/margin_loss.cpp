// The losses with a margin by name, for `brigade check`.
#include <brigade/autograd/ops/margin_loss.h>
#include <brigade/lab/reference/operation.h>
#include <brigade/lab/reference/ops/detail.h>

namespace brigade::lab::reference {

namespace {

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

}  // namespace

}  // namespace brigade::lab::reference
