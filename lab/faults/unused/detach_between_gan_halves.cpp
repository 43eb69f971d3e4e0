// UNU-12: generator and discriminator in one wrapper; the discriminator's backward stops at detach().
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace detach_between_gan_halves {

struct GanImpl : nn::Module {
  nn::Linear generator{nullptr}, discriminator{nullptr};
  GanImpl() {
    generator = register_module("generator", nn::Linear(4, 4));
    discriminator = register_module("discriminator", nn::Linear(4, 1));
  }
  // The discriminator's opinion of made-up examples: for its own training first, for the generator's second.
  std::pair<Tensor, Tensor> forward(const Tensor& noise) {
    const Tensor fake = brigade::tanh(generator(noise));
    return {discriminator(fake.detach()), discriminator(fake)};
  }
};
BRIGADE_MODULE(Gan);

std::vector<Tensor> run(const FaultContext& context) {
  Gan net;
  auto ddp = wrap(context, net);
  optim::Adam for_generator(net->generator->parameters(), {.lr = 1e-2});
  optim::Adam for_discriminator(net->discriminator->parameters(), {.lr = 1e-2});
  for (int step = 0; step < 2; ++step) {
    const auto [of_detached, of_fake] = ddp(rank_batch(context));
    for_discriminator.zero_grad();
    binary_cross_entropy_with_logits(of_detached, zeros_like(of_detached)).backward();
    // Keep the path of the second backward sound: the discriminator moves after it.
    for_generator.zero_grad();
    binary_cross_entropy_with_logits(of_fake, ones_like(of_fake)).backward();
    for_generator.step();
    for_discriminator.step();
  }
  return net->parameters();
}

const AddFault add(Fault{"UNU-12",
                         "one wrapper round generator and discriminator, with a detach() between",
                         {.kind = "unused_parameters",
                          .parameters = {"generator.weight", "generator.bias"},
                          .cause = "detached",
                          .module = "*"},
                         &run});

}  // namespace detach_between_gan_halves
}  // namespace brigade::lab
