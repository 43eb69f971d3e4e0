// DIV-04: forward inside no_sync, backward outside: what counts is where backward runs.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace forward_in_no_sync {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    Tensor loss;
    {
      const auto no_sync = ddp.no_sync();
      loss = loss_of(ddp(rank_batch(context)));
    }
    loss.backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "DIV-04", .title = "forward inside no_sync, backward outside", .expected = {.detected = false}, .run = &run});

}  // namespace forward_in_no_sync
}  // namespace brigade::lab
