// DIV-11: the dtype of the module is changed after wrapping.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace dtype_changed_after_wrapping {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  if (context.fixed) net->to(kFloat64);
  auto ddp = wrap(context, net);
  if (!context.fixed) net->to(kFloat64);
  loss_of(ddp(rank_batch(context).to(net->a->weight.dtype()))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-11",
                         .title = "a round trip to another dtype after wrapping",
                         .expected = {.kind = "error"},
                         .run = &run});

}  // namespace dtype_changed_after_wrapping
}  // namespace brigade::lab
