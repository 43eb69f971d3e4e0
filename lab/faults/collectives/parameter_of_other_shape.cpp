// COL-18: a parameter has another shape on rank 1.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace parameter_of_other_shape {

std::vector<Tensor> run(const FaultContext& context) {
  nn::Linear net(4, context.rank() == 1 && !context.fixed ? 5 : 4, false);
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "COL-18",
    .title = "another shape on rank 1",
    .expected = {.kind = "model_mismatch", .parameters = {"weight"}, .ranks = {1}, .cause = "model_differs"},
    .run = &run});

}  // namespace parameter_of_other_shape
}  // namespace brigade::lab
