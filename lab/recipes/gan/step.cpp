// The step of the recipe `gan` in its forms: what is set up, where detach() stands, what a backward
// is to reach.
#include <brigade/lab/recipes/gan/step.h>

#include <brigade/autograd/functional.h>

#include <array>
#include <optional>

namespace brigade::lab {

// What a form is made of. A step is always: make images, train the discriminator on them, train the
// generator by the discriminator.
struct GanTraining::Loop {
  const char* name;
  bool two_wrappers = false;  // generator and discriminator each in a wrapper of its own
  bool find_unused = false;   // find_unused_parameters
  bool expects = false;       // each backward says which optimizer it is for
  bool toggles = false;       // only the parameters of the optimizer whose turn it is require grad
  bool detaches = true;       // the discriminator learns from fake.detach()
  bool makes_twice = false;   // images for the discriminator without recording, then once more for the generator
  bool keeps_graph = false;   // retain_graph in the discriminator's backward

  static const Loop& find(const std::string& form) {
    static constexpr std::array<Loop, 7> kLoops{{{.name = "expect", .expects = true},
                                                 {.name = "toggle", .toggles = true},
                                                 {.name = "failing", .keeps_graph = true},
                                                 {.name = "find-unused", .find_unused = true},
                                                 {.name = "two-forwards", .makes_twice = true},
                                                 {.name = "two-wrappers", .two_wrappers = true},
                                                 {.name = "no-detach", .detaches = false, .keeps_graph = true}}};
    for (const Loop& loop : kLoops) {
      if (loop.name == form) return loop;
    }
    throw ValueError("gan: no form '{}'", form);
  }
};

// What a step calls, through what was set up.
class GanTraining::SetUp {
 public:
  virtual ~SetUp() = default;
  virtual Tensor images(const GanBatch& batch) = 0;
  virtual Tensor discriminator_loss(const GanBatch& batch, const Tensor& fake) = 0;
  virtual Tensor generator_loss(const GanBatch& batch, const Tensor& fake) = 0;
  virtual dist::DistributedDataParallelBase& wrapper() = 0;  // that has the generator
};

class GanTraining::OneWrapper final : public SetUp {
 public:
  OneWrapper(const DigitsGan& net, dist::Fabric& fabric) : model_(fabric.setup_module(net)) {}
  Tensor images(const GanBatch& batch) override { return model_(batch, GanPart::Images, Tensor()); }
  Tensor discriminator_loss(const GanBatch& batch, const Tensor& fake) override {
    return model_(batch, GanPart::DiscriminatorLoss, fake);
  }
  Tensor generator_loss(const GanBatch& batch, const Tensor& fake) override {
    return model_(batch, GanPart::GeneratorLoss, fake);
  }
  dist::DistributedDataParallelBase& wrapper() override { return *model_.ddp(); }

 private:
  dist::FabricModule<DigitsGan> model_;
};

class GanTraining::TwoWrappers final : public SetUp {
 public:
  TwoWrappers(const DigitsGan& net, dist::Fabric& fabric)
      : generator_(fabric.setup_module(net->generator)),
        discriminator_(fabric.setup_module(net->discriminator)),
        perception_(net->perception) {}
  Tensor images(const GanBatch& batch) override { return generator_(batch.noise, batch.labels); }
  Tensor discriminator_loss(const GanBatch& batch, const Tensor& fake) override {
    return lab::discriminator_loss(discriminator_(batch.images), discriminator_(fake));
  }
  // Its backward goes through both wrappers: the discriminator's gradients are reduced once more,
  // for nothing.
  Tensor generator_loss(const GanBatch& batch, const Tensor& fake) override {
    Opinion of_real;
    {
      const NoGradGuard constant;
      of_real = discriminator_(batch.images);
    }
    return lab::generator_loss(of_real, discriminator_(fake), perception_, batch, fake);
  }
  dist::DistributedDataParallelBase& wrapper() override { return *generator_.ddp(); }

 private:
  dist::FabricModule<DigitsGenerator> generator_;
  dist::FabricModule<DigitsDiscriminator> discriminator_;
  DigitsNet perception_;
};

dist::FabricOptions GanTraining::options_for(const std::string& form, dist::FabricOptions options) {
  if (!Loop::find(form).find_unused) return options;
  dist::DDPOptions ddp = options.strategy.options();
  ddp.find_unused_parameters = true;
  options.strategy = ddp;
  return options;
}

GanTraining::GanTraining(DigitsGan net, dist::Fabric& fabric, const std::string& form, double lr)
    // The discriminator has the easier task, and the slower rate: the two stay in balance.
    : for_generator(net->generator->parameters(), {.lr = lr, .betas = {0.5, 0.999}}),
      for_discriminator(net->discriminator->parameters(), {.lr = lr / 2, .betas = {0.5, 0.999}}),
      fabric_(fabric),
      loop_(std::make_unique<Loop>(Loop::find(form))),
      generator_(fabric.setup_optimizers(for_generator)),
      discriminator_(fabric.setup_optimizers(for_discriminator)) {
  if (loop_->two_wrappers) {
    net_ = std::make_unique<TwoWrappers>(net, fabric);
  } else {
    net_ = std::make_unique<OneWrapper>(net, fabric);
  }
}

GanTraining::~GanTraining() = default;

dist::DistributedDataParallelBase& GanTraining::wrapper() { return net_->wrapper(); }

// Backward and step of one of the two optimizers.
Tensor GanTraining::take_turn(dist::FabricOptimizer& optimizer, const std::function<Tensor()>& loss_of,
                              bool keeps_graph) {
  if (loop_->toggles) fabric_.toggle_optimizer(optimizer);
  optimizer.zero_grad();
  Tensor loss;
  {
    const auto region = fabric_.autocast();  // for what a form computes outside of a wrapper
    loss = loss_of();
  }
  {
    std::optional<dist::DistributedDataParallelBase::Expected> only;
    if (loop_->expects) only.emplace(net_->wrapper().expect(*optimizer));
    fabric_.backward(loss, {.retain_graph = keeps_graph});
  }
  optimizer.step();
  fabric_.untoggle_optimizer(optimizer);
  return loss;
}

GanTraining::Losses GanTraining::step(const GanBatch& batch) {
  Tensor fake;
  if (loop_->makes_twice) {
    const NoGradGuard no_grad;
    fake = net_->images(batch);
  } else {
    fake = net_->images(batch);
  }
  // Without detach() this backward goes on into the generator, whose gradients nobody wants, and
  // the graph of the images has to be kept for the generator's own.
  const Tensor of_both = take_turn(
      discriminator_, [&] { return net_->discriminator_loss(batch, loop_->detaches ? fake.detach() : fake); },
      loop_->keeps_graph);
  if (loop_->makes_twice) fake = net_->images(batch);
  const Tensor of_fake = take_turn(
      generator_, [&] { return net_->generator_loss(batch, fake); }, false);
  return {of_both, of_fake};
}

}  // namespace brigade::lab
