// AMP-22: rank 1 alone bypasses the scaler, from the second step on.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace plain_backward_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const Tensor loss = loss_of(ddp(rank_batch(context)));
    const bool bypass = step > 0 && context.rank() == 1 && !context.fixed;
    (bypass ? loss : scaler.scale(loss)).backward();
    context.fault_on_next_line();
    scaler.step(optimizer);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-22",
                         .title = "a plain backward on rank 1 only, from the second step on",
                         .expected = {.kind = "wrongly_scaled",
                                      .parameters = {"a.weight"},
                                      .ranks = {1},
                                      .cause = "wrong_scale",
                                      .words = {"bypassed the scaler, whose scale is 1024", "1024 times too small"}},
                         .run = &run});

}  // namespace plain_backward_on_one_rank
}  // namespace brigade::lab
