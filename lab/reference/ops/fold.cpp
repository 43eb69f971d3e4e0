// Unfold, fold and pixel shuffles by name, for `brigade check`.
#include <brigade/autograd/ops/fold.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

Size2 size_of(const Arguments& args, const char* name) {
  Size2 size = 1;
  args.set(name, size);
  return size;
}
FoldOptions fold_options(const Arguments& args) {
  FoldOptions options;
  args.set("dilation", options.dilation);
  args.set("padding", options.padding);
  args.set("stride", options.stride);
  return options;
}

const AddOperations add_fold{
    {"unfold",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return unfold(in[0], size_of(args, "kernel_size"), fold_options(args));
     }},
    {"fold",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return fold(in[0], size_of(args, "output_size"), size_of(args, "kernel_size"), fold_options(args));
     }},
    {"pixel_shuffle",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return pixel_shuffle(in[0], args.integer("upscale_factor"));
     }},
    {"pixel_unshuffle",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       return pixel_unshuffle(in[0], args.integer("downscale_factor"));
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
