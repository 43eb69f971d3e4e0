// The Poisson and the Gaussian likelihood loss by name, for `brigade check`.
#include <brigade/autograd/ops/likelihood_loss.h>
#include <brigade/lab/reference/operation.h>
#include <brigade/lab/reference/ops/detail.h>

namespace brigade::lab::reference {

namespace {

const AddOperations add_likelihood_loss{
    {"poisson_nll_loss",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       PoissonNLLLossOptions options;
       args.set("log_input", options.log_input);
       args.set("full", options.full);
       options.reduction = reduction(args);
       return poisson_nll_loss(in[0], in[1], options);
     }},
    {"gaussian_nll_loss",
     [](const Inputs& in, const Arguments& args) -> Outputs {
       GaussianNLLLossOptions options;
       args.set("full", options.full);
       options.reduction = reduction(args);
       return gaussian_nll_loss(in[0], in[1], in[2], options);
     }},
};

}  // namespace

}  // namespace brigade::lab::reference
