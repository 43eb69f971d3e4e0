// DIV-25: rank 1 alone clips the averaged gradients, where they are no views of the buckets.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace clipped_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  dist::DDPOptions options = context.options;
  options.gradient_as_bucket_view = false;
  auto ddp = wrap(context, net, options);
  loss_of(ddp(rank_batch(context))).backward();
  if (context.rank() == 1 || context.fixed) optim::clip_grad_norm_(net->parameters(), 0.01);
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-25",
                         .title = "gradients clipped on rank 1 only, gradient_as_bucket_view off",
                         .expected = {.kind = "gradients_edited",
                                      .parameters = {"a.weight", "b.weight"},
                                      .ranks = {1},
                                      .cause = "edited_by_hand",
                                      .op = "clip_grad_norm_"},
                         .run = &run});

}  // namespace clipped_on_one_rank
}  // namespace brigade::lab
