// COL-19: rank 1 has a parameter more.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace one_parameter_more {

std::vector<Tensor> run(const FaultContext& context) {
  nn::Linear net(4, 4, context.rank() == 1 && !context.fixed);
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "COL-19",
    .title = "another number of parameters on rank 1",
    .expected = {.kind = "model_mismatch", .parameters = {"bias"}, .ranks = {1}, .cause = "model_differs"},
    .run = &run});

}  // namespace one_parameter_more
}  // namespace brigade::lab
