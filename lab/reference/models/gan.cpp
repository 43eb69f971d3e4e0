// A generative adversarial network: first the discriminator learns from real and generated examples, then the
// generator from the discriminator.
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/reference/models/model.h>
#include <brigade/nn/nn.h>

namespace brigade::lab::reference {
namespace {

struct GANImpl : nn::Module {
  nn::Sequential generator{nullptr}, discriminator{nullptr};
  GANImpl(int64_t latent, int64_t hidden, int64_t features) {
    generator = register_module("generator",
                                nn::Sequential(nn::Linear(latent, hidden), nn::Tanh(), nn::Linear(hidden, features)));
    discriminator = register_module(
        "discriminator", nn::Sequential(nn::Linear(features, hidden), nn::LeakyReLU(0.2), nn::Linear(hidden, 1)));
  }
};
BRIGADE_MODULE(GAN);

class GANModel final : public Model {
 public:
  explicit GANModel(const Arguments& args)
      : net_(args.integer("latent"), args.integer("hidden"), args.integer("features")) {}
  nn::Module& module() override { return *net_; }
  int phases() const override { return 2; }
  nn::Module& trained(int phase) override { return phase == 1 ? *net_->generator : *net_->discriminator; }
  Step run(int phase, const std::vector<Tensor>& inputs) override {
    const Tensor &noise = inputs.at(0), &real = inputs.at(1);
    const Tensor made = net_->generator(noise);
    const Tensor yes = ones({real.size(0), 1}, real.options());
    if (phase == 1) return {binary_cross_entropy_with_logits(net_->discriminator(made), yes), {made}};
    const Tensor of_real = binary_cross_entropy_with_logits(net_->discriminator(real), yes);
    return {of_real + binary_cross_entropy_with_logits(net_->discriminator(made.detach()), zeros_like(yes)), {made}};
  }

 private:
  GAN net_;
};

const AddModel add_gan("gan", [](const Arguments& args) -> std::unique_ptr<Model> {
  return std::make_unique<GANModel>(args);
});

}  // namespace
}  // namespace brigade::lab::reference
