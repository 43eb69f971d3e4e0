// COL-15: rank 1 is slower than the time-out.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <thread>

namespace brigade::lab {
namespace slower_than_timeout {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    if (step == 1 && context.rank() == 1 && !context.fixed) {
      const dist::Activity loading(*context.group, "loading data");
      std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    }
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-15",
                         .title = "rank 1 loads data for longer than the time-out",
                         .expected = {.kind = "collective_timeout", .ranks = {1}, .cause = "rank_behind"},
                         .run = &run,
                         .timeout = std::chrono::milliseconds(900)});

}  // namespace slower_than_timeout
}  // namespace brigade::lab
