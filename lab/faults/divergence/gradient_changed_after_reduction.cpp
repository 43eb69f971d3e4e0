// DIV-13: a gradient is changed on rank 1 after it was averaged.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace gradient_changed_after_reduction {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  if (context.rank() == 1 || context.fixed) net->a->weight.grad().mul_(0.5);
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "DIV-13",
    .title = "a gradient edited on rank 1 after the reduction",
    .expected =
        {.kind = "gradients_edited", .parameters = {"a.weight"}, .ranks = {1}, .cause = "edited_by_hand", .op = "mul_"},
    .run = &run});

}  // namespace gradient_changed_after_reduction
}  // namespace brigade::lab
