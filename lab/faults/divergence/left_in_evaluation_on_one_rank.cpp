// DIV-29: rank 0 evaluates alone and does not call train() afterwards: its batch norm goes on in evaluation.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace left_in_evaluation_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Normed net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context)) - 1.0).backward();
    optimizer.step();
    if (step != 1 || context.rank() != 0) continue;
    const NoGradGuard no_grad;
    net->eval();
    loss_of(net(rank_batch(context))).item<float>();
    if (context.fixed) net->train();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-29",
                         .title = "rank 0 evaluates, and does not call train() again",
                         .expected = {.kind = "modes_differ",
                                      .ranks = {0},
                                      .cause = "modes_differ",
                                      .module = "norm",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace left_in_evaluation_on_one_rank
}  // namespace brigade::lab
