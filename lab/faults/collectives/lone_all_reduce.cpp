// COL-26: rank 0 alone all-reduces the loss, for its log.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace lone_all_reduce {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 3; ++step) {
    const Tensor loss = loss_of(ddp(rank_batch(context)));
    loss.backward();
    sgd_step(net->parameters());
    if (step == 1 && (context.rank() == 0 || context.fixed))
      context.group->all_reduce(loss.detach(), {.op = dist::ReduceOp::Avg})->wait();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-26",
                         .title = "rank 0 alone all-reduces the loss for its log",
                         .expected = {.kind = "collective_mismatch", .ranks = {0}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace lone_all_reduce
}  // namespace brigade::lab
