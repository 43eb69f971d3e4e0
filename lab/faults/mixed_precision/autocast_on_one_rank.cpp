// AMP-21: rank 1 alone runs its forward under autocast.
#include <brigade/amp/autocast.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace autocast_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  const bool is_on = context.rank() == 1 || context.fixed;
  for (int step = 0; step < 6; ++step) {
    optimizer.zero_grad();
    Tensor loss;
    {
      context.fault_on_next_line();
      const amp::autocast region(context.device.type, kBFloat16, is_on);
      loss = loss_of(ddp(rank_batch(context)));
    }
    loss.backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-21",
                         .title = "autocast on rank 1 only",
                         .expected = {.kind = "autocast_differs",
                                      .ranks = {1},
                                      .cause = "modes_differ",
                                      .severity = dist::Severity::Warning,
                                      .op = "autocast",
                                      .words = {"rank 0: no autocast", "rank 1: bfloat16"}},
                         .run = &run});

}  // namespace autocast_on_one_rank
}  // namespace brigade::lab
