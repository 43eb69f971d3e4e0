// Flips, rolls, repeats and diagonals by name, for `brigade check`.
#include <brigade/autograd/ops/rearrange.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_rearrange{
    {"flip", [](const Inputs& in, const Arguments& args) -> Outputs { return flip(in[0], args.shape("dims")); }},
    {"roll",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const Shape shifts = args.shape("shifts");
       return args.has("dims") ? roll(in[0], shifts, args.shape("dims")) : roll(in[0], shifts);
     }},
    {"repeat", [](const Inputs& in, const Arguments& args) -> Outputs { return repeat(in[0], args.shape("repeats")); }},
    {"tile", [](const Inputs& in, const Arguments& args) -> Outputs { return tile(in[0], args.shape("dims")); }},
    {"repeat_interleave",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const int64_t repeats = args.integer("repeats");
       return args.has("dim") ? repeat_interleave(in[0], repeats, args.integer("dim"))
                              : repeat_interleave(in[0], repeats);
     }},
    {"movedim",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return movedim(in[0], args.shape("source"), args.shape("destination"));
     }},
    {"swapaxes",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return swapaxes(in[0], args.integer("dim0"), args.integer("dim1"));
     }},
    {"swapdims",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return swapdims(in[0], args.integer("dim0"), args.integer("dim1"));
     }},
    {"unbind",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("dim") ? unbind(in[0], args.integer("dim")) : unbind(in[0]);
     }},
    {"diagonal",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("offset") ? diagonal(in[0], args.integer("offset"), args.integer("dim1"), args.integer("dim2"))
                                 : diagonal(in[0]);
     }},
    {"diag_embed",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("offset") ? diag_embed(in[0], args.integer("offset"), args.integer("dim1"), args.integer("dim2"))
                                 : diag_embed(in[0]);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
