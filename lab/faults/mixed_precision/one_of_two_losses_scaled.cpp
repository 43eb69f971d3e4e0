// AMP-18: two losses are added; one of them is scaled.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace one_of_two_losses_scaled {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024});
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    const Tensor output = ddp(rank_batch(context));
    const Tensor likeness = loss_of(output - 1.0);
    const Tensor size = mean(abs(output));
    if (context.fixed) {
      scaler.scale(likeness + size).backward();
    } else {
      context.fault_on_next_line();
      const Tensor scaled = scaler.scale(likeness);
      context.fault_on_next_line();
      (scaled + size).backward();
    }
    scaler.step(optimizer);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-18",
                         .title = "one of two losses is scaled",
                         .expected = {.kind = "error",
                                      .words = {"'a.weight'", "holds parts of two scales", "scale 1024", "not scaled",
                                                "one of two losses is scaled: scale their sum"}},
                         .run = &run});

}  // namespace one_of_two_losses_scaled
}  // namespace brigade::lab
