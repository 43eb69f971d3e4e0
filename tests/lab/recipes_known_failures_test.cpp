// Rows of docs/reference/known-failures.md that a recipe covers and that tests/lab/recipes_test.cpp does not.
#include <brigade/autograd/functional.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/commands/train.h>
#include <brigade/lab/recipes/gan/step.h>
#include <brigade/lab/recipes/training.h>

#include "program.h"

#include <doctest/doctest.h>

#include <string>

namespace brigade::test::recipes_known_failures_test {

lab::GanBatch some_batch(int rank) {
  RandomGenerator random(11 + static_cast<uint64_t>(rank));
  return {rand({8, 1, 8, 8}, kFloat32, &random), randint(0, 10, {8}, {kInt64}, &random),
          randn({8, lab::kGanNoise}, kFloat32, &random)};
}

std::vector<Tensor> copies_of(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& tensor : tensors)
    copies.push_back(tensor.detach().clone());
  return copies;
}

// The number of tensors whose values differ from their copies.
int changed(const std::vector<Tensor>& tensors, const std::vector<Tensor>& copies) {
  int count = 0;
  for (size_t i = 0; i < tensors.size(); ++i)
    count += tensors[i].to_vector<float>() != copies[i].to_vector<float>() ? 1 : 0;
  return count;
}

lab::TrainResult train(const std::string& recipe, const std::string& form, const std::string& strategy) {
  lab::TrainOptions options = lab::find_recipe(recipe).defaults;
  options.form = form;
  options.strategy = strategy;
  options.steps = 4;
  options.progress = false;
  return lab::run_recipe(lab::find_recipe(recipe), "threads", 2, options);
}

TEST_CASE(
    "[000.8] a frozen feature net inside the wrapper is neither reduced nor moved, and gradients pass through it") {
  dist::run_threads(2, [](const dist::ProcessGroupPtr& group) {
    dist::Fabric fabric({.accelerator = "cpu"}, group);
    lab::DigitsGan net;
    lab::GanTraining training(net, fabric, "expect", 1e-3);
    for (const dist::NamedParameter& parameter : training.wrapper().reducer().parameters())
      CHECK(parameter.name.find("perception") == std::string::npos);
    const std::vector<Tensor> frozen = copies_of(net->perception->parameters());
    const std::vector<Tensor> trained = copies_of(net->generator->parameters());
    training.step(some_batch(group->rank()));
    CHECK(changed(net->perception->parameters(), frozen) == 0);
    CHECK(changed(net->generator->parameters(), trained) == static_cast<int>(trained.size()));
    for (const Tensor& gradient : lab::gradients_of(net->perception->parameters()))
      CHECK(!gradient.defined());

    // The perceptual loss alone gives the generator gradients.
    net->generator->zero_grad();
    const lab::GanBatch batch = some_batch(group->rank());
    const Tensor fake = net->generator(batch.noise, batch.labels);
    const std::vector<Tensor> loss{mse_loss(net->perception->features(fake), net->perception->features(batch.images))};
    for (const Tensor& gradient : autograd::grad(loss, net->generator->parameters()))
      CHECK(sum(abs(gradient)).item() > 0);
  });
}

TEST_CASE("[000.13] each optimizer steps once, the discriminator first, and a hook runs before each step") {
  dist::run_threads(2, [](const dist::ProcessGroupPtr& group) {
    dist::Fabric fabric({.accelerator = "cpu"}, group);
    lab::DigitsGan net;
    lab::GanTraining training(net, fabric, "two-wrappers", 1e-3);
    std::string order;
    std::vector<Tensor> discriminator = copies_of(net->discriminator->parameters());
    const std::vector<Tensor> generator = copies_of(net->generator->parameters());
    training.for_discriminator.register_step_pre_hook([&](optim::Optimizer&, SourceLocation) {
      order += "d";
      CHECK(changed(net->discriminator->parameters(), discriminator) == 0);
    });
    training.for_generator.register_step_pre_hook([&](optim::Optimizer&, SourceLocation) {
      order += "g";
      CHECK(changed(net->discriminator->parameters(), discriminator) > 0);
      CHECK(changed(net->generator->parameters(), generator) == 0);
      discriminator = copies_of(net->discriminator->parameters());
    });
    training.step(some_batch(group->rank()));
    CHECK(order == "dg");
    CHECK(changed(net->discriminator->parameters(), discriminator) == 0);  // the generator's step did not change it
    CHECK(changed(net->generator->parameters(), generator) > 0);
  });
}

TEST_CASE(
    "[000.2] the failing form of gan trains under the strategy that allows unused parameters, as find-unused does") {
  const lab::TrainResult allowed = train("gan", "failing", "ddp_find_unused_parameters_true");
  CHECK(allowed.loss == train("gan", "find-unused", "ddp").loss);
  CHECK(allowed.parameters_equal);
}

TEST_CASE("[001.8] the verdict names the output that was dropped, and the line that made it") {
  const std::string output = test::run_program("train deep-supervision --quiet --steps 2 --form left-out").output;
  for (const char* part : {"conv2d at lab/recipes/deep_supervision/unet.cpp:", "in `head_coarse` (Conv2d)",
                           "No gradient: head_coarse.weight, head_coarse.bias", "add it to the loss"})
    CHECK_MESSAGE(test::contains(output, part), output);
}

TEST_CASE("[001.9] with the flag it trains, and with the output in the loss it trains without") {
  CHECK(train("deep-supervision", "left-out", "ddp_find_unused_parameters_true").parameters_equal);
  CHECK(train("deep-supervision", "all-scales", "ddp").parameters_equal);
  CHECK_THROWS_AS(train("deep-supervision", "left-out", "ddp"), DistError);
}

}  // namespace brigade::test::recipes_known_failures_test
