// UNU-31: a head is renewed for the next task by assigning its handle anew; the old one stays registered.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace handle_assigned_anew {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int task = 0; task < 2; ++task) {
    if (task > 0 && !context.fixed) net->b = nn::Linear(4, 4, false);
    net->b->to(context.device);
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-31",
    .title = "a layer's handle assigned anew between two steps",
    .expected = {.kind = "unused_parameters", .parameters = {"b.weight"}, .cause = "replaced", .module = "b"},
    .run = &run});

}  // namespace handle_assigned_anew
}  // namespace brigade::lab
