// OK-07: one wrapper round generator and discriminator, find_unused_parameters on: over the step nothing is unused.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace gan_with_unused_allowed {

std::vector<Tensor> run(const FaultContext& context) {
  OneGan net;
  auto ddp = wrap(context, net, context.find_unused());
  for (int step = 0; step < 2; ++step) {
    real_or_fake(ddp(rank_batch(context), true), false).backward();
    sgd_step(net->discriminator->parameters());
    net->zero_grad();
    real_or_fake(ddp(rank_batch(context), false), true).backward();
    sgd_step(net->generator->parameters());
    net->zero_grad();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-07",
                         .title = "one wrapper round a GAN, find_unused_parameters on",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace gan_with_unused_allowed
}  // namespace brigade::lab
