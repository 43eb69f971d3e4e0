// OK-26: rank 0 alone logs the sizes of activations and gradients in hooks, which change nothing.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace logging_hook_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  std::vector<double> log;
  const auto logs = [&log](const Tensor& grad) {
    log.push_back(square(grad).sum().item<float>());
    return Tensor();
  };
  if (context.rank() == 0) net->a->weight.register_hook(logs);
  for (int step = 0; step < 8; ++step) {
    optimizer.zero_grad();
    const Tensor output = ddp(rank_batch(context));
    if (context.rank() == 0) output.register_hook(logs);
    loss_of(output).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "OK-26", .title = "hooks that log, on rank 0 only", .expected = {.detected = false}, .run = &run});

}  // namespace logging_hook_on_one_rank
}  // namespace brigade::lab
