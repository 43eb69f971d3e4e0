// DIV-14: rank 1 leaves out a step (a local test for NaN).
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace step_left_out {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    const bool skip = step == 1 && (context.rank() == 1 || context.fixed);
    if (!skip) optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-14",
                         .title = "rank 1 skips an optimizer step",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace step_left_out
}  // namespace brigade::lab
