// COL-22: rank 1 alone registers a communication hook.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace hook_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  if (context.rank() == 1 || context.fixed) ddp.register_comm_hook(dist::fp16_compress_hook());
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-22",
                         .title = "a communication hook on rank 1 only",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace hook_on_one_rank
}  // namespace brigade::lab
