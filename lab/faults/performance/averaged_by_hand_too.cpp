// PERF-07: gradients that the wrapper has averaged are averaged by hand once more: right, and all bytes go twice.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace averaged_by_hand_too {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  for (const Tensor& parameter : net->parameters()) {
    if (!context.fixed) context.group->all_reduce(parameter.grad(), {.op = dist::ReduceOp::Avg})->wait();
  }
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "PERF-07",
                         .title = "gradients averaged by hand and by the wrapper",
                         .expected = {.kind = "averaged_twice",
                                      .ranks = {kAnyRanks},
                                      .cause = "reduced_twice",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace averaged_by_hand_too
}  // namespace brigade::lab
