// AMP-16: unscale_ and update() after every micro-batch: what has been gathered is divided again.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <optional>

namespace brigade::lab {
namespace unscaled_within_accumulation {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024});
  for (int micro = 0; micro < 4; ++micro) {
    const bool is_last = micro % 2 == 1;
    {
      std::optional<decltype(ddp)::NoSync> local;
      if (!is_last) local.emplace(ddp.no_sync());
      context.fault_on_next_line();
      scaler.scale(loss_of(ddp(rank_batch(context))) / 2.0).backward();
    }
    if (!is_last && context.fixed) continue;
    context.fault_on_next_line();
    scaler.unscale_(optimizer);
    if (is_last) {
      optim::clip_grad_norm_(net->parameters(), 1.0);
      scaler.step(optimizer);
      optimizer.zero_grad();
    }
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-16",
                         .title = "unscale_ and update() within an accumulation",
                         .expected = {.kind = "error",
                                      .words = {"'a.weight'", "holds parts of two scales: unscaled", "divided by 1024",
                                                "scale 1024", "come after the last backward of an accumulation"}},
                         .run = &run});

}  // namespace unscaled_within_accumulation
}  // namespace brigade::lab
