// OK-32: a penalty on the gradients of a scaled loss, which the program divides by the scale itself.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace penalty_of_scaled_gradients {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024, .growth_interval = 1});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const Tensor loss = loss_of(ddp(rank_batch(context)));
    const std::vector<Tensor> scaled = autograd::grad(scaler.scale(loss), net->parameters(), {.create_graph = true});
    const double inverse = 1 / scaler.get_scale();
    const Tensor penalty = square(scaled[0] * inverse).sum() + square(scaled[1] * inverse).sum();
    scaler.scale(loss + penalty).backward();
    scaler.unscale_(optimizer);
    optim::clip_grad_norm_(net->parameters(), 1.0);
    scaler.step(optimizer);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "OK-32", .title = "a penalty on gradients of a scaled loss", .expected = {.detected = false}, .run = &run});

}  // namespace penalty_of_scaled_gradients
}  // namespace brigade::lab
