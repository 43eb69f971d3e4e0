// DIV-30: rank 1 reads another name of an optimizer than the others, from a file of its own.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace other_optimizer_on_one_rank {

void train(const FaultContext& context, dist::DistributedDataParallel<Chain>& ddp, optim::Optimizer& optimizer) {
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
  }
}

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  if (context.rank() == 1 && !context.fixed) {
    context.fault_on_next_line();
    optim::AdamW optimizer(net->parameters(), {.lr = 0.1});
    train(context, ddp, optimizer);
  } else {
    context.fault_on_next_line();
    optim::SGD optimizer(net->parameters(), {.lr = 0.1});
    train(context, ddp, optimizer);
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "DIV-30",
    .title = "an optimizer of another class on rank 1",
    .expected = {.kind = "optimizers_differ", .ranks = {1}, .cause = "options_differ", .op = "optimizer"},
    .run = &run});

}  // namespace other_optimizer_on_one_rank
}  // namespace brigade::lab
