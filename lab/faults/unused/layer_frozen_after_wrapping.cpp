// UNU-22: a layer is frozen after wrapping.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace layer_frozen_after_wrapping {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  net->b->requires_grad_(false);
  mean(square(ddp(rank_batch(context)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{"UNU-22",
                         "a layer frozen after wrapping",
                         {.kind = "unused_parameters", .parameters = {"b.weight"}, .cause = "frozen", .module = "b"},
                         &run});

}  // namespace layer_frozen_after_wrapping
}  // namespace brigade::lab
