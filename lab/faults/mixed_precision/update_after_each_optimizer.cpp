// AMP-03: update() after each of two optimizers; the scale grows between them.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace update_after_each_optimizer {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD of_a(net->a->parameters(), {.lr = 0.1});
  optim::SGD of_b(net->b->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024, .growth_interval = 2});
  for (int step = 0; step < 3; ++step) {
    of_a.zero_grad();
    of_b.zero_grad();
    scaler.scale(loss_of(ddp(rank_batch(context)))).backward();
    scaler.step(of_a);
    if (!context.fixed && step == 1) {
      context.fault_on_next_line();
      scaler.update();
    }
    scaler.step(of_b);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-03",
                         .title = "update() after each optimizer, and the scale grows between",
                         .expected = {.kind = "error",
                                      .words = {"'b.weight'", "was made at another scale: scale 1024",
                                                "would be unscaled by 2048; update() at", "has set the scale to 2048",
                                                "Call update() once per iteration"}},
                         .run = &run});

}  // namespace update_after_each_optimizer
}  // namespace brigade::lab
