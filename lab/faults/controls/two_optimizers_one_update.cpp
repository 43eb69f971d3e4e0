// OK-31: two optimizers, one scaler, one update() after both.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace two_optimizers_one_update {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::Adam of_a(net->a->parameters(), {.lr = 0.01});
  optim::SGD of_b(net->b->parameters(), {.lr = 0.1, .momentum = 0.9});
  amp::GradScaler scaler({.init_scale = 1024, .growth_interval = 1, .fused_step = true});
  for (int step = 0; step < 3; ++step) {
    of_a.zero_grad();
    of_b.zero_grad();
    scaler.scale(loss_of(ddp(rank_batch(context)))).backward();
    scaler.step(of_a);
    scaler.unscale_(of_b);
    optim::clip_grad_value_(net->b->parameters(), 0.1);
    scaler.step(of_b);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "OK-31", .title = "two optimizers, one update()", .expected = {.detected = false}, .run = &run});

}  // namespace two_optimizers_one_update
}  // namespace brigade::lab
