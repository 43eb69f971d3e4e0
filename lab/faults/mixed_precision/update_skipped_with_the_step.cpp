// AMP-09: a loop that leaves out a step with infinite gradients by itself, and update() with it.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <cmath>
#include <limits>

namespace brigade::lab {
namespace update_skipped_with_the_step {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const double spike = step == 1 ? std::numeric_limits<double>::infinity() : 1.0;
    scaler.scale(loss_of(ddp(rank_batch(context))) * spike).backward();
    context.fault_on_next_line();
    scaler.unscale_(optimizer);
    const double norm = optim::clip_grad_norm_(net->parameters(), 1.0);
    if (!std::isfinite(norm) && !context.fixed) continue;
    scaler.step(optimizer);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-09",
                         .title = "a skipped step also skips update()",
                         .expected = {.kind = "error",
                                      .words = {"unscale_() has already been called on this optimizer since the last "
                                                "update()",
                                                "SGD was unscaled at", "the last update() was at",
                                                "update() at the end of every iteration, a skipped one too"}},
                         .run = &run});

}  // namespace update_skipped_with_the_step
}  // namespace brigade::lab
