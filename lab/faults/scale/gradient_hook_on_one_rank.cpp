// SCL-06: a gradient hook multiplies by 100 on rank 1.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace gradient_hook_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  if (context.rank() == 1 && !context.fixed)
    net->a->weight.register_hook([](const Tensor& grad) { return grad * 100.0; });
  for (int step = 0; step < 2; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-06",
                         .title = "a gradient hook times 100 on rank 1",
                         .expected = {.kind = "gradient_outlier",
                                      .parameters = {"a.weight"},
                                      .ranks = {1},
                                      .cause = "hook_differs",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace gradient_hook_on_one_rank
}  // namespace brigade::lab
