// AMP-06: update() is missing: the second iteration steps again.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace update_missing {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler;
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    scaler.scale(loss_of(ddp(rank_batch(context)))).backward();
    context.fault_on_next_line();
    scaler.step(optimizer);
    if (context.fixed) scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-06",
                         .title = "update() is missing",
                         .expected = {.kind = "error",
                                      .words = {"step() has already been called since the last update()",
                                                "SGD has stepped at", "Call update() at the end of every iteration"}},
                         .run = &run});

}  // namespace update_missing
}  // namespace brigade::lab
