// Norms, normalize and cosine_similarity by name, for `brigade check`.
#include <brigade/autograd/ops/norm.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_norm{
    {"norm",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("p") ? norm(in[0], args.number("p"), args.shape("dim", {}), args.flag("keepdim", false))
                            : norm(in[0]);
     }},
    {"vector_norm",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("ord") ? vector_norm(in[0], args.number("ord"), args.shape("dim"), args.flag("keepdim"))
                              : vector_norm(in[0]);
     }},
    {"matrix_norm",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? matrix_norm(in[0], args.shape("dim"), args.flag("keepdim")) : matrix_norm(in[0]);
     }},
    {"normalize",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("p") ? normalize(in[0], args.number("p"), args.integer("dim")) : normalize(in[0]);
     }},
    {"cosine_similarity",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? cosine_similarity(in[0], in[1], args.integer("dim")) : cosine_similarity(in[0], in[1]);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
