// AMP-01: an optimization loop written by hand: a backward without the scaler, which then is to unscale.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace plain_backward {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler;
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    const Tensor loss = loss_of(ddp(rank_batch(context)));
    if (context.fixed) {
      scaler.scale(loss).backward();
    } else {
      context.fault_on_next_line();
      loss.backward();
    }
    scaler.unscale_(optimizer);
    optim::clip_grad_norm_(net->parameters(), 1.0);
    scaler.step(optimizer);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "AMP-01",
    .title = "a plain backward, then unscale_",
    .expected = {.kind = "error", .words = {"Attempted unscale_ but _scale is None", "whose loss was not scaled"}},
    .run = &run});

}  // namespace plain_backward
}  // namespace brigade::lab
