// AMP-19: the learning rate's schedule moves on although the scaler has skipped the step.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <limits>

namespace brigade::lab {
namespace schedule_moves_on {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  optim::StepLR schedule(optimizer, 1, 0.5);
  amp::GradScaler scaler({.init_scale = 1024});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const double spike = step == 1 ? std::numeric_limits<double>::infinity() : 1.0;
    scaler.scale(loss_of(ddp(rank_batch(context))) * spike).backward();
    context.fault_on_next_line();
    const bool has_stepped = scaler.step(optimizer);
    scaler.update();
    if (has_stepped || !context.fixed) {
      context.fault_on_next_line();
      schedule.step();
    }
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-19",
                         .title = "a schedule moves on after a skipped step",
                         .expected = {.kind = "warning",
                                      .file_and_line = false,
                                      .severity = dist::Severity::Warning,
                                      .words = {"StepLR.step()", "was skipped, since gradients were not finite",
                                                "if (scaler.step(optimizer)) scheduler.step()"}},
                         .run = &run});

}  // namespace schedule_moves_on
}  // namespace brigade::lab
