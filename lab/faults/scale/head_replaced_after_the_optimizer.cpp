// SCL-13: fine-tuning: the optimizer is made before the head is replaced by a new one, which it never moves.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <optional>

namespace brigade::lab {
namespace head_replaced_after_the_optimizer {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  std::optional<optim::SGD> optimizer;
  if (!context.fixed) optimizer.emplace(net->parameters(), optim::SGDOptions{.lr = 0.01});
  net->b = net->replace_module("b", nn::Linear(4, 4, false));
  if (context.fixed) optimizer.emplace(net->parameters(), optim::SGDOptions{.lr = 0.01});
  auto ddp = wrap(context, net);
  for (int step = 0; step < 4; ++step) {
    optimizer->zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer->step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-13",
                         .title = "a head replaced after the optimizer was made",
                         .expected = {.kind = "stale_optimizer",
                                      .parameters = {"b.weight"},
                                      .ranks = {kAnyRanks},
                                      .cause = "replaced",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace head_replaced_after_the_optimizer
}  // namespace brigade::lab
