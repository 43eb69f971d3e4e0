// The networks of the recipe `gan`, a generator and a discriminator of the UCI digits, and its losses.
#pragma once

#include <brigade/lab/recipes/digits.h>
#include <brigade/nn/nn.h>

namespace brigade::lab {

inline constexpr int64_t kGanNoise = 16;

// Real images, their digits, and the noise from which the generator makes images of the same digits.
struct GanBatch {
  Tensor images;  // [n, 1, 8, 8], 0 to 1
  Tensor labels;  // [n] int64
  Tensor noise;   // [n, kGanNoise]
};

struct DigitsGeneratorImpl : nn::Module {
  nn::Linear fc{nullptr};
  nn::Conv2d conv1{nullptr}, conv2{nullptr};

  DigitsGeneratorImpl();
  // Images [n, 1, 8, 8]
  Tensor forward(const Tensor& noise, const Tensor& labels);
};
BRIGADE_MODULE(DigitsGenerator);

// What the discriminator sees in images, and how real it thinks they are.
struct Opinion {
  Tensor features;  // [n, 512]
  Tensor logits;    // [n, 1], above 0: real
};

struct DigitsDiscriminatorImpl : nn::Module {
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::Linear head{nullptr};

  DigitsDiscriminatorImpl();
  Opinion forward(const Tensor& images);
};
BRIGADE_MODULE(DigitsDiscriminator);

// To call real images real, and fake ones fake.
Tensor discriminator_loss(const Opinion& of_real, const Opinion& of_fake);
// To fool the discriminator; to make images that are on average like real ones in its features
// (feature matching: Salimans et al., arXiv 1606.03498); and image by image like the real one of the
// same digit in those of a classifier (perceptual loss: Johnson et al., arXiv 1603.08155).
Tensor generator_loss(const Opinion& of_real, const Opinion& of_fake, DigitsNet& perception, const GanBatch& batch,
                      const Tensor& fake);

// What one call of the whole computes: a step calls three times.
enum class GanPart { Images, DiscriminatorLoss, GeneratorLoss };

// Everything under one root, as in a LightningModule: this is what the forms with one wrapper wrap.
struct DigitsGanImpl : nn::Module {
  DigitsGenerator generator{nullptr};
  DigitsDiscriminator discriminator{nullptr};
  DigitsNet perception{nullptr};  // frozen: compares images by what a classifier sees in them

  DigitsGanImpl();
  // Images, or a loss, for which `fake` is what came of Images.
  Tensor forward(const GanBatch& batch, GanPart part, const Tensor& fake);
};
BRIGADE_MODULE(DigitsGan);

}  // namespace brigade::lab
