#include <brigade/autograd/ops/concat.h>
#include <brigade/autograd/ops/embedding.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_indexing{
    {"index_select",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return index_select(in[0], args.integer("dim"), in[1]);
     }},
    {"one_hot",
     [](const Inputs& in, const Arguments& args) -> Outputs { return one_hot(in[0], args.integer("num_classes")); }},
    {"embedding",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("padding_idx") ? embedding(in[0], in[1], args.integer("padding_idx")) : embedding(in[0], in[1]);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
