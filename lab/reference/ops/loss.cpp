#include <brigade/autograd/ops/loss.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

Reduction reduction(const Arguments& args) {
  if (!args.has("reduction")) return Reduction::Mean;
  const std::string name = args.text("reduction");
  if (name == "none") return Reduction::None;
  if (name == "sum") return Reduction::Sum;
  if (name == "mean") return Reduction::Mean;
  throw ValueError("argument 'reduction': expected none, mean or sum, got '" + name + "'");
}

const AddOperations add_loss{
    {"cross_entropy",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("ignore_index") ? cross_entropy(in[0], in[1], reduction(args), args.integer("ignore_index"))
                                       : cross_entropy(in[0], in[1], reduction(args));
     }},
    {"binary_cross_entropy_with_logits",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return binary_cross_entropy_with_logits(in[0], in[1], reduction(args));
     }},
    {"mse_loss",
     [](const Inputs& in, const Arguments& args) -> Outputs { return mse_loss(in[0], in[1], reduction(args)); }},
    {"l1_loss",
     [](const Inputs& in, const Arguments& args) -> Outputs { return l1_loss(in[0], in[1], reduction(args)); }},
};

}  // namespace

}  // namespace brigade::lab::reference
