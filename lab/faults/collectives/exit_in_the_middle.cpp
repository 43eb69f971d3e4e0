// COL-25: the process of rank 1 exits with status 0 in the middle of training.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <thread>

#include <unistd.h>

namespace brigade::lab {
namespace exit_in_the_middle {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 3; ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));       // as long as a step of a real model
    if (step == 1 && context.rank() == 1 && !context.fixed) _exit(0);  // "the budget of this job is used up"
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-25",
                         .title = "rank 1 exits with status 0 in the middle",
                         .expected = {.kind = "rank_lost", .ranks = {1}, .cause = "rank_gone"},
                         .run = &run,
                         .needs_processes = true});

}  // namespace exit_in_the_middle
}  // namespace brigade::lab
