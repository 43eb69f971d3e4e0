// AMP-11: both optimizers of a GAN step, although the loss of this iteration reaches the discriminator alone.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace optimizer_without_gradients {

std::vector<Tensor> run(const FaultContext& context) {
  OneGan gan;
  auto ddp = wrap(context, gan, context.find_unused());
  optim::Adam of_generator(gan->generator->parameters(), {.lr = 0.1});
  optim::Adam of_discriminator(gan->discriminator->parameters(), {.lr = 0.1});
  amp::GradScaler scaler;
  for (int step = 0; step < 2; ++step) {
    of_generator.zero_grad();
    of_discriminator.zero_grad();
    const bool of_fake = step == 0;  // the discriminator's turn
    scaler.scale(real_or_fake(ddp(rank_batch(context), of_fake), !of_fake)).backward();
    if (!of_fake || !context.fixed) {
      context.fault_on_next_line();
      scaler.step(of_generator);
    }
    scaler.step(of_discriminator);
    scaler.update();
  }
  return gan->parameters();
}

const AddFault add(Fault{.id = "AMP-11",
                         .title = "an optimizer without gradients",
                         .expected = {.kind = "error",
                                      .words = {"No inf checks were recorded for this optimizer", "of Adam",
                                                "'generator.weight'", "no backward since they were cleared"}},
                         .run = &run});

}  // namespace optimizer_without_gradients
}  // namespace brigade::lab
