// SCL-07: no zero_grad between steps.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace no_zero_grad {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    if (context.fixed) optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-07",
                         .title = "no zero_grad: gradients pile up over the steps",
                         .expected = {.kind = "gradients_accumulate",
                                      .parameters = {"a.weight", "b.weight"},
                                      .ranks = {kAnyRanks},
                                      .cause = "not_cleared",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace no_zero_grad
}  // namespace brigade::lab
