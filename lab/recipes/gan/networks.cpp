// What the generator and the discriminator compute, and what each of them is to learn.
#include <brigade/lab/recipes/gan/networks.h>

#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

namespace brigade::lab {
namespace {

constexpr double kSlope = 0.2;  // of leaky ReLUs: gradients reach the generator through units that are off
// Real images are called real with this probability: a discriminator that is never quite sure
// leaves the generator a gradient (Salimans et al., arXiv 1606.03498).
constexpr double kSmoothed = 0.9;
constexpr double kFeatureMatching = 2;
constexpr double kPerceptual = 0.1;

Tensor called(const Opinion& opinion, double real) {
  return binary_cross_entropy_with_logits(opinion.logits, full_like(opinion.logits, real));
}

}  // namespace

DigitsGeneratorImpl::DigitsGeneratorImpl() {
  fc = register_module("fc", nn::Linear(kGanNoise + 10, 32 * 4 * 4));
  conv1 = register_module("conv1", nn::Conv2d(32, 16, 3, {.padding = 1}));
  conv2 = register_module("conv2", nn::Conv2d(16, 1, 3, {.padding = 1}));
}

Tensor DigitsGeneratorImpl::forward(const Tensor& noise, const Tensor& labels) {
  const Tensor wanted = one_hot(labels, 10).to(noise.dtype());
  const Tensor small = leaky_relu(fc(cat({noise, wanted}, 1)), kSlope).reshape({-1, 32, 4, 4});
  const Tensor large = interpolate(small, {.scale_factor = {{2, 2}}});
  return sigmoid(conv2(leaky_relu(conv1(large), kSlope)));
}

DigitsDiscriminatorImpl::DigitsDiscriminatorImpl() {
  conv1 = register_module("conv1", nn::Conv2d(1, 16, 3, {.padding = 1}));
  conv2 = register_module("conv2", nn::Conv2d(16, 32, 3, {.padding = 1}));
  head = register_module("head", nn::Linear(32 * 4 * 4, 1));
}

Opinion DigitsDiscriminatorImpl::forward(const Tensor& images) {
  const Tensor small = avg_pool2d(leaky_relu(conv1(images), kSlope), 2);
  const Tensor features = leaky_relu(conv2(small), kSlope).flatten(1);
  return {features, head(features)};
}

Tensor discriminator_loss(const Opinion& of_real, const Opinion& of_fake) {
  return called(of_real, kSmoothed) + called(of_fake, 0);
}

Tensor generator_loss(const Opinion& of_real, const Opinion& of_fake, DigitsNet& perception, const GanBatch& batch,
                      const Tensor& fake) {
  const Tensor seen_in_fake = perception->features(fake);
  const Tensor seen_in_real = perception->features(batch.images);
  return called(of_fake, 1) + kFeatureMatching * mse_loss(of_fake.features.mean({0}), of_real.features.mean({0})) +
         kPerceptual * mse_loss(seen_in_fake, seen_in_real);
}

DigitsGanImpl::DigitsGanImpl() {
  generator = register_module("generator", DigitsGenerator());
  discriminator = register_module("discriminator", DigitsDiscriminator());
  perception = register_module("perception", DigitsNet());
  // Before wrapping: a wrapper waits for the gradients of all that can be trained.
  perception->requires_grad_(false);
}

Tensor DigitsGanImpl::forward(const GanBatch& batch, GanPart part, const Tensor& fake) {
  if (part == GanPart::Images) return generator(batch.noise, batch.labels);
  if (part == GanPart::DiscriminatorLoss) return discriminator_loss(discriminator(batch.images), discriminator(fake));
  Opinion of_real;
  {
    const NoGradGuard constant;  // the generator has no part in it
    of_real = discriminator(batch.images);
  }
  return generator_loss(of_real, discriminator(fake), perception, batch, fake);
}

}  // namespace brigade::lab
