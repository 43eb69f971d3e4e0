// UNU-16: no targets on rank 1, so its loss is a fresh zero that depends on nothing.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace loss_of_fresh_zero {

struct DetectorImpl : PairImpl {
  Tensor forward(const Tensor& x) { return b(relu(a(x))); }
};
BRIGADE_MODULE(Detector);

std::vector<Tensor> run(const FaultContext& context) {
  Detector net;
  auto ddp = wrap(context, net);
  const Tensor output = ddp(rank_batch(context));
  Tensor loss = mean(square(output));
  if (context.group->rank() == 1) loss = zeros({}, {kFloat32, context.device}).requires_grad_();
  loss.backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{"UNU-16",
                         "a fresh zero loss on rank 1 reaches no parameter at all",
                         {.kind = "unused_parameters",
                          .parameters = {"a.weight", "b.weight"},
                          .ranks = {1},
                          .cause = "output_dropped",
                          .module = "*"},
                         &run});

}  // namespace loss_of_fresh_zero
}  // namespace brigade::lab
