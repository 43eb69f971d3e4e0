// OK-04: early micro-batches go through the module, the last through the wrapper.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace early_micro_batches_through_module {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    loss_of(net(rank_batch(context))).backward();
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-04",
                         .title = "early micro-batches through the bare module",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace early_micro_batches_through_module
}  // namespace brigade::lab
