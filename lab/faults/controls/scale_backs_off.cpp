// OK-28: the scale of the start is too large for float16: the first steps are skipped until it fits.
#include <brigade/amp/autocast.h>
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace scale_backs_off {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 1e-3});
  optim::StepLR schedule(optimizer, 2, 0.5);
  amp::GradScaler scaler;
  int skipped = 0;
  for (int step = 0; step < 12; ++step) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const amp::autocast region(context.device.type, kFloat16);
      loss = loss_of(ddp(rank_batch(context))) * 500.0;
    }
    scaler.scale(loss).backward();
    if (scaler.step(optimizer)) {
      schedule.step();
    } else {
      ++skipped;
    }
    scaler.update();
  }
  if (skipped == 0 || skipped > 10) throw Error("{} of 12 steps were skipped", skipped);
  return {net->a->weight, net->b->weight, full({1}, scaler.get_scale())};
}

const AddFault add(Fault{.id = "OK-28",
                         .title = "a scale that is too large at first and backs off",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace scale_backs_off
}  // namespace brigade::lab
