// AMP-12: update() after every micro-batch, the step after the last of them.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <optional>

namespace brigade::lab {
namespace update_without_step {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler;
  for (int micro = 0; micro < 4; ++micro) {
    const bool is_last = micro % 2 == 1;
    {
      std::optional<decltype(ddp)::NoSync> local;
      if (!is_last) local.emplace(ddp.no_sync());
      scaler.scale(loss_of(ddp(rank_batch(context))) / 2.0).backward();
    }
    if (is_last) {
      scaler.step(optimizer);
      optimizer.zero_grad();
    }
    if (is_last || !context.fixed) {
      context.fault_on_next_line();
      scaler.update();
    }
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "AMP-12",
    .title = "update() without a step",
    .expected = {.kind = "error",
                 .words = {"No inf checks were recorded prior to update", "No optimizer was stepped or unscaled",
                           "Call scaler.step(optimizer) before scaler.update()"}},
    .run = &run});

}  // namespace update_without_step
}  // namespace brigade::lab
