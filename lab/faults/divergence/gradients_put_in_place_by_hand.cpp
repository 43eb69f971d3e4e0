// DIV-07: gradients come from autograd::grad and are put in place by hand.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace gradients_put_in_place_by_hand {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  const Tensor loss[] = {loss_of(ddp(rank_batch(context)))};
  const std::vector<Tensor> parameters = net->parameters();
  const std::vector<Tensor> gradients = autograd::grad(loss, parameters);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (context.fixed) context.group->all_reduce(gradients[i], {.op = dist::ReduceOp::Avg})->wait();
    parameters[i].set_grad(gradients[i]);
  }
  optim::SGD optimizer(parameters, {.lr = 0.1});
  optimizer.step();
  return net->parameters();
}

const AddFault add(Fault{
    .id = "DIV-07",
    .title = "gradients from autograd::grad, assigned by hand",
    .expected = {.kind = "unreduced_gradients", .parameters = {"a.weight", "b.weight"}, .cause = "set_by_hand"},
    .run = &run});

}  // namespace gradients_put_in_place_by_hand
}  // namespace brigade::lab
