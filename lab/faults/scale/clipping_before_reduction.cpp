// SCL-10: each rank clips its own gradients, under no_sync, before they are averaged.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace clipping_before_reduction {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  {
    const auto no_sync = ddp.no_sync();
    loss_of(ddp(rank_batch(context))).backward();
    if (!context.fixed) optim::clip_grad_norm_(net->parameters(), 0.01);
  }
  loss_of(ddp(rank_batch(context))).backward();
  if (context.fixed) optim::clip_grad_norm_(net->parameters(), 0.01);
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-10",
                         .title = "clipping by the local norm before the reduction",
                         .expected = {.kind = "edited_before_reduction",
                                      .ranks = {kAnyRanks},
                                      .cause = "edited_by_hand",
                                      .severity = dist::Severity::Warning,
                                      .op = "clip_grad_norm_"},
                         .run = &run});

}  // namespace clipping_before_reduction
}  // namespace brigade::lab
