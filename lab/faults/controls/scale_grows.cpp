// OK-29: the scale grows while training goes on.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace scale_grows {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::AdamW optimizer(net->parameters(), {.lr = 0.01});
  amp::GradScaler scaler({.init_scale = 1024, .growth_interval = 2});
  for (int step = 0; step < 5; ++step) {
    optimizer.zero_grad();
    scaler.scale(loss_of(ddp(rank_batch(context)))).backward();
    scaler.unscale_(optimizer);
    optim::clip_grad_norm_(net->parameters(), 0.1);
    scaler.step(optimizer);
    scaler.update();
  }
  if (scaler.get_scale() != 4096) throw Error("the scale is {}", scaler.get_scale());
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-29", .title = "a scale that grows", .expected = {.detected = false}, .run = &run});

}  // namespace scale_grows
}  // namespace brigade::lab
