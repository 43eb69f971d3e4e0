// UNU-14: one wrapper round generator and discriminator, requires_grad toggled per optimizer.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace gan_requires_grad_toggled {

struct ToggledImpl : GanImpl {
  Tensor forward(const Tensor& noise) { return discriminator(brigade::tanh(generator(noise))); }
};
BRIGADE_MODULE(Toggled);

std::vector<Tensor> run(const FaultContext& context) {
  Toggled net;
  auto ddp = wrap(context, net);
  net->generator->requires_grad_(false);
  real_or_fake(ddp(rank_batch(context)), false).backward();
  net->generator->requires_grad_(true);
  real_or_fake(ddp(rank_batch(context)), true).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-14",
                         .title = "one wrapper round a GAN, requires_grad of the generator toggled off",
                         .expected = {.kind = "unused_parameters",
                                      .parameters = {"generator.weight"},
                                      .cause = "frozen",
                                      .module = "generator"},
                         .run = &run});

}  // namespace gan_requires_grad_toggled
}  // namespace brigade::lab
