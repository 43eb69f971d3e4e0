// UNU-08: the first layer runs under no_grad inside forward.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace no_grad_in_forward {

struct QuietImpl : PairImpl {
  Tensor forward(const Tensor& x) {
    Tensor features;
    {
      const NoGradGuard no_grad;
      features = a(x);
    }
    return b(features);
  }
};
BRIGADE_MODULE(Quiet);

std::vector<Tensor> run(const FaultContext& context) {
  Quiet net;
  auto ddp = wrap(context, net);
  mean(square(ddp(rank_batch(context)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{"UNU-08",
                         "a layer under no_grad inside forward",
                         {.kind = "unused_parameters", .parameters = {"a.weight"}, .cause = "no_grad", .module = "a"},
                         &run});

}  // namespace no_grad_in_forward
}  // namespace brigade::lab
