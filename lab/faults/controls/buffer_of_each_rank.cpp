// OK-35: each rank measures the size of its own inputs, with broadcast_buffers off.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace buffer_of_each_rank {

std::vector<Tensor> run(const FaultContext& context) {
  ScaledInputs net;
  dist::DDPOptions options = context.options;
  options.broadcast_buffers = false;
  auto ddp = wrap(context, net, options);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    const Tensor x = rank_batch(context);
    optimizer.zero_grad();
    loss_of(ddp(x)).backward();
    optimizer.step();
    if (step != 1) continue;
    const NoGradGuard no_grad;
    const Tensor spread = sqrt(mean(square(x), {0}));
    net->spread.copy_(spread);
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-35",
                         .title = "a buffer that each rank measures for itself, broadcast_buffers off",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace buffer_of_each_rank
}  // namespace brigade::lab
