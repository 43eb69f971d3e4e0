// Batch norm by name, for `brigade check`.
#include <brigade/autograd/ops/batch_norm.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_batch_norm{
    // The updated running statistics are results as well.
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
};

}  // namespace

}  // namespace brigade::lab::reference
