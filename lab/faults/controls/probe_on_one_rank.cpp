// OK-20: rank 1 trains a probe on the detached output, between forward and backward.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace probe_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  nn::Linear probe(4, 1);
  probe->to(context.device);
  optim::SGD of_probe(probe->parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const Tensor output = ddp(rank_batch(context));
    if (context.rank() == 1) {
      of_probe.zero_grad();
      loss_of(probe(output.detach())).backward();
      of_probe.step();
    }
    loss_of(output).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-20",
                         .title = "a probe trained on the detached output on rank 1",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace probe_on_one_rank
}  // namespace brigade::lab
