// Views, copies, casts, joins, parts, indices and rearrangements by name, for `brigade check`.
#include <brigade/autograd/ops/indexing.h>
#include <brigade/autograd/ops/matmul.h>
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

PadMode pad_mode(const std::string& name) {
  if (name == "constant") return PadMode::Constant;
  if (name == "reflect") return PadMode::Reflect;
  if (name == "replicate") return PadMode::Replicate;
  if (name == "circular") return PadMode::Circular;
  throw ValueError("argument 'mode': expected constant, reflect, replicate or circular, got '{}'", name);
}

const AddOperations add_pad{
    {"pad",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const Shape given = args.shape("pad");
       const std::vector<int64_t> pads(given.begin(), given.end());
       if (args.has("value")) return pad(in[0], pads, PadMode::Constant, args.scalar("value"));
       return args.has("mode") ? pad(in[0], pads, pad_mode(args.text("mode"))) : pad(in[0], pads);
     }},
};

const AddOperations add_triangle{
    {"tril",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("diagonal") ? tril(in[0], args.integer("diagonal")) : tril(in[0]);
     }},
    {"triu",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return args.has("diagonal") ? triu(in[0], args.integer("diagonal")) : triu(in[0]);
     }},
};

}  // namespace
}  // namespace brigade::lab::reference
