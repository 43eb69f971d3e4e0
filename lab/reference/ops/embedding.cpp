// Embedding by name, for `brigade check`.
#include <brigade/autograd/ops/embedding.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_embedding{
    {"embedding",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       if (args.has("scale_grad_by_freq")) return embedding(in[0], in[1], -1, args.flag("scale_grad_by_freq"));
       return args.has("padding_idx") ? embedding(in[0], in[1], args.integer("padding_idx")) : embedding(in[0], in[1]);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
