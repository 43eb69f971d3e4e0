// Views, copies and casts by name, for `brigade check`.
#include <brigade/autograd/ops/shape.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_shape{
    {"reshape", [](const Inputs& in, const Arguments& args) -> Outputs { return in[0].reshape(args.shape("shape")); }},
    {"view", [](const Inputs& in, const Arguments& args) -> Outputs { return in[0].view(args.shape("size")); }},
    {"flatten",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       if (args.has("end_dim")) return in[0].flatten(args.integer("start_dim"), args.integer("end_dim"));
       return args.has("start_dim") ? in[0].flatten(args.integer("start_dim")) : in[0].flatten();
     }},
    {"permute", [](const Inputs& in, const Arguments& args) -> Outputs { return in[0].permute(args.shape("dims")); }},
    {"transpose",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return in[0].transpose(args.integer("dim0"), args.integer("dim1"));
     }},
    {"t", [](const Inputs& in, const Arguments&) -> Outputs { return in[0].t(); }},
    {"expand", [](const Inputs& in, const Arguments& args) -> Outputs { return in[0].expand(args.shape("size")); }},
    {"unsqueeze",
     [](const Inputs& in, const Arguments& args) -> Outputs { return in[0].unsqueeze(args.integer("dim")); }},
    {"squeeze", [](const Inputs& in, const Arguments& args) -> Outputs { return in[0].squeeze(args.integer("dim")); }},
    {"slice",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const int64_t dim = args.integer("dim"), start = args.integer("start"), end = args.integer("end");
       return args.has("step") ? in[0].slice(dim, start, end, args.integer("step")) : in[0].slice(dim, start, end);
     }},
    {"narrow",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return in[0].narrow(args.integer("dim"), args.integer("start"), args.integer("length"));
     }},
    {"select",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return in[0].select(args.integer("dim"), args.integer("index"));
     }},
    {"clone", [](const Inputs& in, const Arguments&) -> Outputs { return in[0].clone(); }},
    {"contiguous_of_transposed",
     [](const Inputs& in, const Arguments&) -> Outputs { return in[0].transpose(0, 1).contiguous(); }},
    {"to",
     [](const Inputs& in, const Arguments& args) -> Outputs { return in[0].to(dtype_from_name(args.text("dtype"))); }},
};

}  // namespace

}  // namespace brigade::lab::reference
