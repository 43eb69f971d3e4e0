// COL-21: rank 1 wraps with another option.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace other_option {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  const bool odd = context.rank() == 1 && !context.fixed;
  auto ddp = wrap(context, net, odd ? context.find_unused() : context.options);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-21",
                         .title = "find_unused_parameters on rank 1 only",
                         .expected = {.kind = "model_mismatch", .ranks = {1}, .cause = "model_differs"},
                         .run = &run});

}  // namespace other_option
}  // namespace brigade::lab
