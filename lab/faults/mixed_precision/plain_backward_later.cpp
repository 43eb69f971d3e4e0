// AMP-02: the scaler is bypassed from the second step on, when its scale is in place and nothing is missing any more.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace plain_backward_later {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const Tensor loss = loss_of(ddp(rank_batch(context)));
    if (context.fixed || step == 0) {
      scaler.scale(loss).backward();
    } else {
      context.fault_on_next_line();
      loss.backward();
    }
    scaler.step(optimizer);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-02",
                         .title = "a plain backward from the second step on",
                         .expected = {.kind = "error",
                                      .words = {"'a.weight'", "bypassed the scaler, whose scale is 1024",
                                                "1024 times too small", "No weight has moved"}},
                         .run = &run});

}  // namespace plain_backward_later
}  // namespace brigade::lab
