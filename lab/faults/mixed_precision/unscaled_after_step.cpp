// AMP-08: unscale_ after the step, to log a norm.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace unscaled_after_step {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler;
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    scaler.scale(loss_of(ddp(rank_batch(context)))).backward();
    if (context.fixed) scaler.unscale_(optimizer);
    context.fault_on_next_line();
    scaler.step(optimizer);
    if (!context.fixed) {
      context.fault_on_next_line();
      scaler.unscale_(optimizer);
    }
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-08",
                         .title = "unscale_ after step",
                         .expected = {.kind = "error",
                                      .words = {"unscale_() is being called after step()", "SGD has stepped at",
                                                "unscale_() before step()"}},
                         .run = &run});

}  // namespace unscaled_after_step
}  // namespace brigade::lab
