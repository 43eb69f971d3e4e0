// DIV-24: rank 0 swaps averaged weights in, to evaluate, and does not swap them back.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace averages_not_swapped_back {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  const Tensor average = net->b->weight.detach().clone();
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
    const NoGradGuard no_grad;
    average.mul_(0.9).add_(net->b->weight, 0.1);
    if (step != 1 || context.rank() != 0) continue;
    const Tensor trained = net->b->weight.clone();
    net->b->weight.copy_(average);
    loss_of(net(rank_batch(context))).item<float>();
    if (context.fixed) net->b->weight.copy_(trained);
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-24",
                         .title = "averaged weights swapped in on rank 0, and not back",
                         .expected = {.kind = "parameters_written",
                                      .parameters = {"b.weight"},
                                      .ranks = {0},
                                      .cause = "values_differ",
                                      .module = "b",
                                      .op = "copy_"},
                         .run = &run});

}  // namespace averages_not_swapped_back
}  // namespace brigade::lab
