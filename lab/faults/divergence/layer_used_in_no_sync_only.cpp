// DIV-06: a layer is used only in the micro-batch inside no_sync.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace layer_used_in_no_sync_only {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net, context.find_unused());
  for (int step = 0; step < 2; ++step) {
    {
      const auto no_sync = ddp.no_sync();
      net->skip_b = false;
      loss_of(ddp(rank_batch(context))).backward();
    }
    net->skip_b = true;
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-06",
                         .title = "a layer used only in the micro-batch inside no_sync, find_unused_parameters on",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace layer_used_in_no_sync_only
}  // namespace brigade::lab
