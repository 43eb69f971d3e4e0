// COL-20: the dtype differs on rank 1.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace parameter_of_other_dtype {

std::vector<Tensor> run(const FaultContext& context) {
  nn::Linear net(4, 4, false);
  if (context.rank() == 1 && !context.fixed) net->to(kFloat64);
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "COL-20",
    .title = "another dtype on rank 1",
    .expected = {.kind = "model_mismatch", .parameters = {"weight"}, .ranks = {1}, .cause = "model_differs"},
    .run = &run});

}  // namespace parameter_of_other_dtype
}  // namespace brigade::lab
