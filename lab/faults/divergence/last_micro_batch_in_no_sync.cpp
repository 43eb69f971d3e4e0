// DIV-05: gradient accumulation, the last micro-batch inside no_sync as well.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace last_micro_batch_in_no_sync {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  {
    const auto no_sync = ddp.no_sync();
    loss_of(ddp(rank_batch(context))).backward();
    if (!context.fixed) loss_of(ddp(rank_batch(context))).backward();
  }
  if (context.fixed) loss_of(ddp(rank_batch(context))).backward();
  optimizer.step();
  return net->parameters();
}

const AddFault add(Fault{
    .id = "DIV-05",
    .title = "the last micro-batch also inside no_sync",
    .expected = {.kind = "unreduced_gradients", .parameters = {"a.weight", "b.weight"}, .cause = "not_reduced"},
    .run = &run});

}  // namespace last_micro_batch_in_no_sync
}  // namespace brigade::lab
