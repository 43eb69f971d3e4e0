// COL-06: all_reduce on most ranks, broadcast on rank 1.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace all_reduce_against_broadcast {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  const Tensor value = ones({4}, {kFloat32, context.device});
  if (context.rank() == 1 && !context.fixed) {
    context.group->broadcast(value)->wait();
  } else {
    context.group->all_reduce(value)->wait();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-06",
                         .title = "all_reduce against broadcast",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace all_reduce_against_broadcast
}  // namespace brigade::lab
