// COL-01: rank 1 has one batch less.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace one_batch_less {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  const int batches = context.rank() == 1 && !context.fixed ? 2 : 3;
  for (int step = 0; step < batches; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  context.group->barrier({.description = "end of training"});
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-01",
                         .title = "rank 1 has fewer batches",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace one_batch_less
}  // namespace brigade::lab
