// SCL-03: a layer is used on some ranks only: the mean counts the others as zero, by design.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace layer_used_on_some_ranks {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  net->skip_b = context.rank() == 1;
  auto ddp = wrap(context, net, context.find_unused());
  loss_of(ddp(rank_batch(context))).backward();
  // To be shown, not scolded: the users of each parameter are known on every rank.
  if (ddp.reducer().users()[1] != context.group->size() - 1) throw ValueError("the number of users is not known");
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-03",
                         .title = "a layer used on one rank only, find_unused_parameters on",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace layer_used_on_some_ranks
}  // namespace brigade::lab
