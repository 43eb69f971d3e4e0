// SCL-08: an output that is infinite on rank 1 takes part in the loss with weight zero.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace infinite_output_with_weight_zero {

std::vector<Tensor> run(const FaultContext& context) {
  Heads net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    const auto [used, unused] = ddp(rank_batch(context));
    const bool bad = step == 0 && context.rank() == 1 && !context.fixed;
    const Tensor divided = unused / full({1}, bad ? 0.0 : 2.0, {kFloat32, context.device});
    (loss_of(used) + 0.0 * divided.sum()).backward();
    sgd_step(net->parameters());
    // Numbers in place of NaN, to go on with.
    for (const Tensor& parameter : net->parameters()) {
      const NoGradGuard no_grad;
      if (step == 0 && !context.fixed) parameter.fill_(0.5);
    }
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-08",
                         .title = "0 * output, where the output is infinite on rank 1",
                         .expected = {.kind = "non_finite_gradients",
                                      .ranks = {1},
                                      .cause = "non_finite",
                                      .severity = dist::Severity::Warning,
                                      .op = "div"},
                         .run = &run});

}  // namespace infinite_output_with_weight_zero
}  // namespace brigade::lab
