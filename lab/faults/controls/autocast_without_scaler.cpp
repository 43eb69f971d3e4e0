// OK-34: autocast in bfloat16, which needs no scaler.
#include <brigade/amp/autocast.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace autocast_without_scaler {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::AdamW optimizer(net->parameters(), {.lr = 0.01});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const amp::autocast region(context.device.type, kBFloat16);
      loss = loss_of(ddp(rank_batch(context)));
    }
    loss.backward();
    optim::clip_grad_norm_(net->parameters(), 0.1);
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "OK-34", .title = "autocast in bfloat16, without a scaler", .expected = {.detected = false}, .run = &run});

}  // namespace autocast_without_scaler
}  // namespace brigade::lab
