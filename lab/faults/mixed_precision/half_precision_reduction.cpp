// AMP-20: gradients travel in float16, finite on every rank, and their sum is not: the scaler skips, and a note says why.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace half_precision_reduction {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  dist::DDPOptions options = context.options;
  options.reduce_dtype = kFloat16;
  // Divided before the cast: whatever the sum, it fits.
  if (context.fixed) options.gradient_predivide_factor = 65536;
  auto ddp = wrap(context, net, options);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1 << 22});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    scaler.scale(loss_of(ddp(rank_batch(context)))).backward();
    if (!scaler.step(optimizer) && context.fixed) throw Error("a step was skipped");
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-20",
                         .title = "a reduction in float16 overflows, under a scaler",
                         .expected = {.kind = "hook_result",
                                      .cause = "overflow",
                                      .severity = dist::Severity::Note,
                                      .op = "reduce_in_float16",
                                      .words = {"finite on every rank before", "gradient_predivide_factor"}},
                         .run = &run});

}  // namespace half_precision_reduction
}  // namespace brigade::lab
