// COL-13: rank 1 does not come to a barrier.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <thread>

namespace brigade::lab {
namespace missing_at_barrier {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  if (context.rank() == 1 && !context.fixed) {
    const dist::Activity busy(*context.group, "writing a checkpoint");
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  } else {
    context.group->monitored_barrier(std::chrono::milliseconds(context.fixed ? 30000 : 900));
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-13",
                         .title = "rank 1 misses a barrier",
                         .expected = {.kind = "collective_timeout", .ranks = {1}, .cause = "rank_behind"},
                         .run = &run,
                         .ranks = 3,
                         .timeout = std::chrono::milliseconds(900)});

}  // namespace missing_at_barrier
}  // namespace brigade::lab
