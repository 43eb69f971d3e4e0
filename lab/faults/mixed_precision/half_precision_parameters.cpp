// AMP-15: the model itself is converted to float16, and a scaler is used as if it were not.
#include <brigade/amp/autocast.h>
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace half_precision_parameters {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  if (!context.fixed) net->to(kFloat16);
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024});
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const amp::autocast region(context.device.type, kFloat16, context.fixed);
      loss = loss_of(ddp(rank_batch(context).to(net->a->weight.dtype())));
    }
    scaler.scale(loss).backward();
    context.fault_on_next_line();
    scaler.step(optimizer);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-15",
                         .title = "float16 parameters under a scaler",
                         .expected = {.kind = "error",
                                      .words = {"Attempting to unscale FP16 gradients", "'a.weight' of SGD",
                                                "Keep the parameters in float32"}},
                         .run = &run});

}  // namespace half_precision_parameters
}  // namespace brigade::lab
