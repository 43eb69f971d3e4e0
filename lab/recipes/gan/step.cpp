// The step of the recipe `gan` in its forms: who is wrapped, where detach() stands, what a backward
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
  bool detaches = true;       // the discriminator learns from fake.detach()
  bool makes_twice = false;   // images for the discriminator without recording, then once more for the generator
  bool keeps_graph = false;   // retain_graph in the discriminator's backward

  static const Loop& find(const std::string& form) {
    static constexpr std::array<Loop, 6> kLoops{{{.name = "expect", .expects = true},
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

// What a step calls, through whatever is wrapped.
class GanTraining::Wrapped {
 public:
  virtual ~Wrapped() = default;
  virtual Tensor images(const GanBatch& batch) = 0;
  virtual Tensor discriminator_loss(const GanBatch& batch, const Tensor& fake) = 0;
  virtual Tensor generator_loss(const GanBatch& batch, const Tensor& fake) = 0;
  virtual dist::DistributedDataParallelBase& wrapper() = 0;  // that has the generator
};

class GanTraining::OneWrapper final : public Wrapped {
 public:
  OneWrapper(DigitsGan net, const dist::ProcessGroupPtr& group, const dist::DDPOptions& options)
      : ddp_(std::move(net), group, options) {}
  Tensor images(const GanBatch& batch) override { return ddp_(batch, GanPart::Images, Tensor()); }
  Tensor discriminator_loss(const GanBatch& batch, const Tensor& fake) override {
    return ddp_(batch, GanPart::DiscriminatorLoss, fake);
  }
  Tensor generator_loss(const GanBatch& batch, const Tensor& fake) override {
    return ddp_(batch, GanPart::GeneratorLoss, fake);
  }
  dist::DistributedDataParallelBase& wrapper() override { return ddp_; }

 private:
  dist::DistributedDataParallel<DigitsGan> ddp_;
};

class GanTraining::TwoWrappers final : public Wrapped {
 public:
  TwoWrappers(const DigitsGan& net, const dist::ProcessGroupPtr& group, const dist::DDPOptions& options)
      : generator_(net->generator, group, options),
        discriminator_(net->discriminator, group, options),
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
  dist::DistributedDataParallelBase& wrapper() override { return generator_; }

 private:
  dist::DistributedDataParallel<DigitsGenerator> generator_;
  dist::DistributedDataParallel<DigitsDiscriminator> discriminator_;
  DigitsNet perception_;
};

GanTraining::GanTraining(DigitsGan net, const dist::ProcessGroupPtr& group, const std::string& form, double lr,
                         const dist::DDPOptions& options)
    // The discriminator has the easier task, and the slower rate: the two stay in balance.
    : for_generator(net->generator->parameters(), {.lr = lr, .betas = {0.5, 0.999}}),
      for_discriminator(net->discriminator->parameters(), {.lr = lr / 2, .betas = {0.5, 0.999}}),
      loop_(std::make_unique<Loop>(Loop::find(form))) {
  dist::DDPOptions chosen = options;
  if (loop_->find_unused) chosen.find_unused_parameters = true;
  if (loop_->two_wrappers) {
    net_ = std::make_unique<TwoWrappers>(net, group, chosen);
  } else {
    net_ = std::make_unique<OneWrapper>(std::move(net), group, chosen);
  }
}

GanTraining::~GanTraining() = default;

dist::Reducer& GanTraining::reducer() { return net_->wrapper().reducer(); }

GanTraining::Losses GanTraining::step(const GanBatch& batch) {
  using Expected = dist::DistributedDataParallelBase::Expected;
  Tensor fake;
  if (loop_->makes_twice) {
    const NoGradGuard no_grad;
    fake = net_->images(batch);
  } else {
    fake = net_->images(batch);
  }

  for_discriminator.zero_grad();
  // Without detach() this backward goes on into the generator, whose gradients nobody wants, and
  // the graph of the images has to be kept for the generator's own.
  const Tensor of_both = net_->discriminator_loss(batch, loop_->detaches ? fake.detach() : fake);
  {
    std::optional<Expected> only;
    if (loop_->expects) only.emplace(net_->wrapper().expect(for_discriminator));
    of_both.backward({.retain_graph = loop_->keeps_graph});
  }
  for_discriminator.step();

  for_generator.zero_grad();
  if (loop_->makes_twice) fake = net_->images(batch);
  const Tensor of_fake = net_->generator_loss(batch, fake);
  {
    std::optional<Expected> only;
    if (loop_->expects) only.emplace(net_->wrapper().expect(for_generator));
    of_fake.backward();
  }
  for_generator.step();
  return {of_both, of_fake};
}

}  // namespace brigade::lab
