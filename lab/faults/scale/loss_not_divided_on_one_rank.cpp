// SCL-17: rank 1 does not divide its loss by the number of ranks' parts, as the others do.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace loss_not_divided_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 5; ++step) {
    optimizer.zero_grad();
    Tensor loss = loss_of(ddp(rank_batch(context)));
    context.fault_on_next_line();
    if (context.rank() != 1 || context.fixed) loss = loss / 4.0;
    loss.backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-17",
                         .title = "a loss that rank 1 does not divide",
                         .expected = {.kind = "uneven_factors",
                                      .ranks = {kAnyRanks},
                                      .cause = "wrong_scale",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace loss_not_divided_on_one_rank
}  // namespace brigade::lab
