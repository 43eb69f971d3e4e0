// DIV-15: a scheduler lowers the learning rate by the local loss.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace learning_rate_by_local_loss {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
    // On rank 1 alone the loss has reached a plateau.
    const bool plateau = step == 1 && (context.rank() == 1 || context.fixed);
    if (plateau) optimizer.options().lr *= 0.1;
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "DIV-15",
    .title = "a scheduler stepped with the local loss",
    .expected = {.kind = "optimizers_differ", .ranks = {1}, .cause = "options_differ", .op = "lr of group 0"},
    .run = &run});

}  // namespace learning_rate_by_local_loss
}  // namespace brigade::lab
