// AMP-07: gradients are unscaled twice in one iteration: to log their norm, and to clip them.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace unscaled_twice {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler;
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    scaler.scale(loss_of(ddp(rank_batch(context)))).backward();
    context.fault_on_next_line();
    scaler.unscale_(optimizer);
    if (!context.fixed) {
      context.fault_on_next_line();
      scaler.unscale_(optimizer);
    }
    optim::clip_grad_norm_(net->parameters(), 1.0);
    scaler.step(optimizer);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-07",
                         .title = "unscale_ twice in one iteration",
                         .expected = {.kind = "error",
                                      .words = {"unscale_() has already been called on this optimizer since the last "
                                                "update()",
                                                "SGD was unscaled at", "Call unscale_() once per optimizer"}},
                         .run = &run});

}  // namespace unscaled_twice
}  // namespace brigade::lab
