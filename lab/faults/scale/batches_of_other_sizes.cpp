// SCL-02: rank 0 has 7 samples, the others have 1, each takes the mean.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace batches_of_other_sizes {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context, context.rank() == 0 && !context.fixed ? 7 : 1))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-02",
                         .title = "batches of 7 and 1, mean losses",
                         .expected = {.kind = "uneven_batches",
                                      .ranks = {kAnyRanks},
                                      .cause = "uneven_batches",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace batches_of_other_sizes
}  // namespace brigade::lab
