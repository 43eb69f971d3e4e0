// SCL-11: gradients that the wrapper has averaged are summed over the ranks by hand.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace summed_by_hand_too {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  for (const Tensor& parameter : net->parameters()) {
    if (!context.fixed) context.group->all_reduce(parameter.grad())->wait();
  }
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-11",
                         .title = "averaged gradients summed by hand once more",
                         .expected = {.kind = "averaged_twice",
                                      .ranks = {kAnyRanks},
                                      .cause = "reduced_twice",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace summed_by_hand_too
}  // namespace brigade::lab
