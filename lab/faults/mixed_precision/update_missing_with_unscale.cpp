// AMP-05: update() is missing in a loop that calls unscale_: the second iteration unscales "after step".
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace update_missing_with_unscale {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler;
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    scaler.scale(loss_of(ddp(rank_batch(context)))).backward();
    scaler.unscale_(optimizer);
    optim::clip_grad_norm_(net->parameters(), 1.0);
    context.fault_on_next_line();
    scaler.step(optimizer);
    if (context.fixed) scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "AMP-05",
    .title = "update() is missing, unscale_ is called",
    .expected = {.kind = "error",
                 .words = {"unscale_() is being called after step()", "SGD", "update() has not been called yet",
                           "Call update() at the end of every iteration"}},
    .run = &run});

}  // namespace update_missing_with_unscale
}  // namespace brigade::lab
