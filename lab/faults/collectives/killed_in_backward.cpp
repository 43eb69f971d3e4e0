// COL-14: rank 1 is killed in its backward.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <csignal>
#include <thread>

namespace brigade::lab {
namespace killed_in_backward {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 3; ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));  // as long as a step of a real model
    const Tensor output = ddp(rank_batch(context));
    if (step == 1 && context.rank() == 1 && !context.fixed) {
      output.register_hook([](const Tensor&) -> Tensor {
        std::raise(SIGKILL);
        return {};
      });
    }
    loss_of(output).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-14",
                         .title = "rank 1 is killed in backward (SIGKILL)",
                         .expected = {.kind = "rank_lost", .ranks = {1}, .cause = "rank_gone"},
                         .run = &run,
                         .needs_processes = true});

}  // namespace killed_in_backward
}  // namespace brigade::lab
