// OK-33: micro-batches of one scale under no_sync, then one unscale_, one step, one update().
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <optional>

namespace brigade::lab {
namespace accumulation_under_scaler {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024, .growth_interval = 1});
  for (int micro = 0; micro < 6; ++micro) {
    const bool is_last = micro % 3 == 2;
    {
      std::optional<decltype(ddp)::NoSync> local;
      if (!is_last) local.emplace(ddp.no_sync());
      scaler.scale(loss_of(ddp(rank_batch(context))) / 3.0).backward();
    }
    if (!is_last) continue;
    scaler.unscale_(optimizer);
    optim::clip_grad_norm_(net->parameters(), 0.1);
    scaler.step(optimizer);
    scaler.update();
    optimizer.zero_grad();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-33",
                         .title = "accumulation under a scaler, with one unscale_ at its end",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace accumulation_under_scaler
}  // namespace brigade::lab
