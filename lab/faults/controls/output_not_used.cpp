// OK-06: an output that is not used, find_unused_parameters on.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace output_not_used {

std::vector<Tensor> run(const FaultContext& context) {
  Heads net;
  auto ddp = wrap(context, net, context.find_unused());
  for (int step = 0; step < 2; ++step) {
    loss_of(ddp(rank_batch(context)).first).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-06",
                         .title = "an unused output, find_unused_parameters on",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace output_not_used
}  // namespace brigade::lab
