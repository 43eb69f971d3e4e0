// OK-08: one wrapper round generator and discriminator without a detach: wasteful, correct.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace gan_without_detach {

std::vector<Tensor> run(const FaultContext& context) {
  OneGan net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    real_or_fake(ddp(rank_batch(context), false), false).backward();
    sgd_step(net->discriminator->parameters());
    net->zero_grad();
    real_or_fake(ddp(rank_batch(context), false), true).backward();
    sgd_step(net->generator->parameters());
    net->zero_grad();
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "OK-08", .title = "one wrapper round a GAN without detach", .expected = {.detected = false}, .run = &run});

}  // namespace gan_without_detach
}  // namespace brigade::lab
