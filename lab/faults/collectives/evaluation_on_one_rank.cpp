// COL-02: rank 0 evaluates through the wrapper, in training mode.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace evaluation_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Normed net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
    if (context.rank() != 0) continue;
    if (context.fixed) {
      const NoGradGuard no_grad;
      net->eval();
      net(rank_batch(context));
      net->train();
    } else {
      ddp(rank_batch(context));
    }
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "COL-02",
    .title = "rank 0 alone evaluates through the wrapper",
    .expected = {.kind = "collective_mismatch", .ranks = {kAnyRanks}, .cause = "collective_differs"},
    .run = &run});

}  // namespace evaluation_on_one_rank
}  // namespace brigade::lab
