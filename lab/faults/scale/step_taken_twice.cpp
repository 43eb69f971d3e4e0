// SCL-15: an optimizer steps twice after one backward.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace step_taken_twice {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
    if (!context.fixed) optimizer.step();  // the trainer's own, beside that of a callback
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-15",
                         .title = "a second step without a new backward",
                         .expected = {.kind = "idle_step",
                                      .ranks = {kAnyRanks},
                                      .cause = "no_backward",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace step_taken_twice
}  // namespace brigade::lab
