// DIV-08: a layer is thawed after wrapping.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace layer_thawed_after_wrapping {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  net->b->requires_grad_(context.fixed);
  auto ddp = wrap(context, net);
  net->b->requires_grad_(true);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "DIV-08",
    .title = "a layer thawed after wrapping",
    .expected = {.kind = "unmanaged_parameters", .parameters = {"b.weight"}, .cause = "thawed", .module = "b"},
    .run = &run});

}  // namespace layer_thawed_after_wrapping
}  // namespace brigade::lab
