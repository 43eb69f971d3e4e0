// Group and instance norm by name, for `brigade check`.
#include <brigade/autograd/ops/group_norm.h>
#include <brigade/lab/reference/operation.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_group_norm{
    {"group_norm",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const int64_t groups = args.integer("num_groups");
       return args.has("eps") ? group_norm(in[0], groups, in[1], in[2], args.number("eps"))
                              : group_norm(in[0], groups, in[1], in[2]);
     }},
    {"instance_norm",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       const Tensor mean = in[1].defined() ? in[1].clone() : Tensor();
       const Tensor var = in[2].defined() ? in[2].clone() : Tensor();
       std::vector<Tensor> results{
           args.has("eps") ? instance_norm(in[0], mean, var, in[3], in[4], true, 0.1, args.number("eps"))
                           : instance_norm(in[0], mean, var, in[3], in[4], args.flag("use_input_stats", true))};
       for (const Tensor& running : {mean, var})
         if (running.defined()) results.push_back(running);
       return results;
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
