// TWI-04: a parameter that forward does not use is in the loss (a weight penalty).
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace weight_penalty {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  net->skip_b = true;
  auto ddp = wrap(context, net, context.find_unused());
  (loss_of(ddp(rank_batch(context))) + loss_of(net->b->weight)).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "TWI-04",
                         .title = "a weight penalty on a parameter that forward does not use",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace weight_penalty
}  // namespace brigade::lab
