// These programs train a GAN in one wrapper, and a backward does not reach the generator.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {

// UNU-12: generator and discriminator in one wrapper; the discriminator's backward stops at detach().
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

const AddFault add(Fault{.id = "UNU-12",
                         .name = "detach_between_gan_halves",
                         .title = "one wrapper round generator and discriminator, with a detach() between",
                         .expected = {.kind = "unused_parameters",
                                      .parameters = {"generator.weight", "generator.bias"},
                                      .cause = "detached",
                                      .module = "*"},
                         .run = &run});

}  // namespace detach_between_gan_halves

// UNU-13: one wrapper round generator and discriminator, two forwards, the generator under no_grad in the first.
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
    .name = "gan_generator_under_no_grad",
    .title = "one wrapper round a GAN, generator under no_grad in the first forward",
    .expected = {.kind = "unused_parameters", .parameters = {"generator.weight"}, .cause = "no_grad"},
    .run = &run});

}  // namespace gan_generator_under_no_grad

// UNU-14: one wrapper round generator and discriminator, requires_grad toggled per optimizer.
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
                         .name = "gan_requires_grad_toggled",
                         .title = "one wrapper round a GAN, requires_grad of the generator toggled off",
                         .expected = {.kind = "unused_parameters",
                                      .parameters = {"generator.weight"},
                                      .cause = "frozen",
                                      .module = "generator"},
                         .run = &run});

}  // namespace gan_requires_grad_toggled

}  // namespace brigade::lab
