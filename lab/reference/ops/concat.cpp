// Joins, splits, index_select and one_hot by name, for `brigade check`.
#include <brigade/autograd/ops/concat.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_concat{
    {"index_select",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return index_select(in[0], args.integer("dim"), in[1]);
     }},
    {"one_hot",
     [](const Inputs& in, const Arguments& args) -> Outputs { return one_hot(in[0], args.integer("num_classes")); }},
    {"cat",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? cat(in.all(), args.integer("dim")) : cat(in.all());
     }},
    {"stack",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? stack(in.all(), args.integer("dim")) : stack(in.all());
     }},
    {"split",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const int64_t size = args.integer("split_size_or_sections");
       return args.has("dim") ? split(in[0], size, args.integer("dim")) : split(in[0], size);
     }},
    {"chunk",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const int64_t count = args.integer("chunks");
       return args.has("dim") ? chunk(in[0], count, args.integer("dim")) : chunk(in[0], count);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
