// UNU-02: the auxiliary head that forward never calls, and training stops after one iteration.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace head_never_called_one_iteration {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  net->skip_b = true;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-02",
    .title = "a head that forward never calls, one iteration only",
    .expected = {.kind = "unused_parameters", .parameters = {"b.weight"}, .cause = "module_not_called", .module = "b"},
    .run = &run});

}  // namespace head_never_called_one_iteration
}  // namespace brigade::lab
