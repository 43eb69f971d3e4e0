// UNU-23: a layer is replaced by a new one after wrapping.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace layer_replaced_after_wrapping {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  if (context.fixed) net->b = net->replace_module("b", nn::Linear(4, 4, false));
  auto ddp = wrap(context, net);
  if (!context.fixed) net->b = net->replace_module("b", nn::Linear(4, 4, false));
  net->to(context.device);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-23",
    .title = "a layer replaced after wrapping",
    .expected = {.kind = "unused_parameters", .parameters = {"b.weight"}, .cause = "replaced", .module = "b"},
    .run = &run});

}  // namespace layer_replaced_after_wrapping
}  // namespace brigade::lab
