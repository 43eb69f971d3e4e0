// Gather, scatter, masked_select and the like by name, for `brigade check`.
#include <brigade/autograd/ops/gather.h>
#include <brigade/autograd/ops/indexing.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

// An input that is not given stands for Python's None, a new dimension.
TensorIndex index_of(const Tensor& given) { return given.defined() ? TensorIndex(given) : TensorIndex(indexing::None); }

const AddOperations add_gather{
    {"index",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       if (args.integer("skip", 0) == 1) return in[0].index({indexing::Slice(), index_of(in[1]), index_of(in[2])});
       return in[0].index({index_of(in[1]), index_of(in[2])});
     }},
    {"index_put",
     [](const Inputs& in, const Arguments&) -> Outputs {
       const Tensor y = in[0].clone();
       y.index_put_({in[2], in[3]}, in[1]);
       return y;
     }},
    {"gather",
     [](const Inputs& in, const Arguments& args) -> Outputs { return gather(in[0], args.integer("dim"), in[1]); }},
    {"take_along_dim",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? take_along_dim(in[0], in[1], args.integer("dim")) : take_along_dim(in[0], in[1]);
     }},
    {"scatter",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const int64_t dim = args.integer("dim");
       return args.has("value") ? scatter(in[0], dim, in[1], args.scalar("value")) : scatter(in[0], dim, in[1], in[2]);
     }},
    {"scatter_add",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return scatter_add(in[0], args.integer("dim"), in[1], in[2]);
     }},
    {"index_add",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const int64_t dim = args.integer("dim");
       return args.has("alpha") ? index_add(in[0], dim, in[1], in[2], args.scalar("alpha"))
                                : index_add(in[0], dim, in[1], in[2]);
     }},
    {"index_copy",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return index_copy(in[0], args.integer("dim"), in[1], in[2]);
     }},
    {"index_fill",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return index_fill(in[0], args.integer("dim"), in[1], args.scalar("value"));
     }},
    {"masked_select", [](const Inputs& in, const Arguments&) -> Outputs { return masked_select(in[0], in[1]); }},
    {"nonzero", [](const Inputs& in, const Arguments&) -> Outputs { return nonzero(in[0]); }},
};

}  // namespace

}  // namespace brigade::lab::reference
