#include <brigade/autograd/ops/batch_norm.h>
#include <brigade/autograd/ops/layer_norm.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_norm_layers{
    // The running statistics, moved, are results as well.
    {"batch_norm",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const Tensor mean = in[3].defined() ? in[3].clone() : Tensor();
       const Tensor var = in[4].defined() ? in[4].clone() : Tensor();
       const bool training = args.flag("training");
       std::vector<Tensor> results{args.has("eps") ? batch_norm(in[0], in[1], in[2], mean, var, training,
                                                                args.number("momentum"), args.number("eps"))
                                                   : batch_norm(in[0], in[1], in[2], mean, var, training)};
       for (const Tensor& running : {mean, var})
         if (running.defined()) results.push_back(running);
       return results;
     }},
    {"layer_norm",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const Shape shape = args.shape("normalized_shape");
       return args.has("eps") ? layer_norm(in[0], shape, in[1], in[2], args.number("eps"))
                              : layer_norm(in[0], shape, in[1], in[2]);
     }},
    {"rms_norm",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const Shape shape = args.shape("normalized_shape");
       return args.has("eps") ? rms_norm(in[0], shape, in[1], args.number("eps")) : rms_norm(in[0], shape, in[1]);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
