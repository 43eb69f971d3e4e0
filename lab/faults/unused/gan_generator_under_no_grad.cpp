// UNU-13: one wrapper round generator and discriminator, two forwards, the generator under no_grad in the first.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace gan_generator_under_no_grad {

struct TwoForwardsImpl : GanImpl {
  Tensor forward(const Tensor& noise, bool train_generator) {
    if (train_generator) return discriminator(brigade::tanh(generator(noise)));
    Tensor fake;
    {
      const NoGradGuard no_grad;
      fake = brigade::tanh(generator(noise));
    }
    return discriminator(fake);
  }
};
BRIGADE_MODULE(TwoForwards);

std::vector<Tensor> run(const FaultContext& context) {
  TwoForwards net;
  auto ddp = wrap(context, net);
  real_or_fake(ddp(rank_batch(context), false), false).backward();
  real_or_fake(ddp(rank_batch(context), true), true).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-13",
    .title = "one wrapper round a GAN, generator under no_grad in the first forward",
    .expected = {.kind = "unused_parameters", .parameters = {"generator.weight"}, .cause = "no_grad"},
    .run = &run});

}  // namespace gan_generator_under_no_grad
}  // namespace brigade::lab
