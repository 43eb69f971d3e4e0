// OK-36: a layer thaws after some steps, and the module is wrapped again; the old wrapper goes once the new one is there.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <memory>

namespace brigade::lab {
namespace wrapped_again {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  net->to(context.device);
  net->a->requires_grad_(false);
  using Ddp = dist::DistributedDataParallel<Chain>;
  auto ddp = std::make_unique<Ddp>(net, context.group, context.options);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int step = 0; step < 4; ++step) {
    if (step == 2) {
      net->a->requires_grad_(true);
      ddp = std::make_unique<Ddp>(net, context.group, context.options);
    }
    optimizer.zero_grad();
    mean(square((*ddp)(rank_batch(context)))).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-36",
                         .title = "wrapped again, after a layer has thawed, while the old wrapper lives",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace wrapped_again
}  // namespace brigade::lab
