// The recipe resnet: the statistics that batch norm uses, the network, and images from a CIFAR-10 folder.
#include <brigade/kernels/factory.h>
#include <brigade/lab/resnet18.h>

#include "program.h"
#include "recipe_ranks.h"

#include <core/temporary_folder.h>
#include <data/image_files.h>

#include <doctest/doctest.h>

#include <fstream>

namespace brigade::test::resnet_test {

using test::Trained;

lab::TrainOptions narrow(const std::string& form, int64_t steps) {
  lab::TrainOptions options = lab::find_recipe("resnet").defaults;
  options.form = form;
  options.steps = steps;
  options.width = 4;
  options.progress = false;
  return options;
}

Trained train(const std::string& backend, const lab::TrainOptions& options, int ranks = 2) {
  const lab::Recipe& recipe = lab::find_recipe("resnet");
  const Trained trained = test::train_on(
      backend, [&](const auto& group) { return recipe.train(group, options); }, ranks);
  REQUIRE_MESSAGE(trained.raised.empty(), trained.raised.front().text);
  CHECK(trained.parameters_equal);
  CHECK(trained.gradients_equal);
  return trained;
}

TEST_CASE("ResNet-18 has the parameters that it has elsewhere, and takes images of any size") {
  lab::ResNet18 net(lab::ResNet18Options{.classes = 10, .for_small_images = true});
  int64_t count = 0;
  for (const Tensor& parameter : net->parameters())
    count += parameter.numel();
  // For the network with a 3x3 stem for CIFAR-10; the ImageNet network has 11,689,512 parameters with 1000 classes.
  CHECK(count == 11173962);
  lab::ResNet18 small(lab::ResNet18Options{.channels = 1, .classes = 10, .width = 2, .for_small_images = true});
  CHECK(small(zeros({3, 1, 16, 16})).sizes() == Shape{3, 10});
  CHECK(small(zeros({2, 1, 32, 28})).sizes() == Shape{2, 10});
}

TEST_CASE("with SyncBatchNorm two ranks have the curve of one, with BatchNorm2d another, on every backend") {
  const auto curve = [](const std::string& backend, const std::string& form, int ranks) {
    lab::TrainOptions options = narrow(form, 6);
    options.precision = "64-true";
    return train(backend, options, ranks).loss;
  };
  const std::vector<double> one = curve("threads", "sync-batch-norm", 1);
  REQUIRE(one.size() == 6);
  CHECK(curve("threads", "local-batch-norm", 1) == one);
  for (const std::string& backend : test::recipe_backends()) {
    CAPTURE(backend);
    CHECK(test::worst_difference(curve(backend, "sync-batch-norm", 2), one) < 1e-9);
    CHECK(test::worst_difference(curve(backend, "local-batch-norm", 2), one) > 1e-4);
  }
}

TEST_CASE("running statistics that are not broadcast are those of each rank, which is reported") {
  const Trained apart = train("threads", narrow("buffers-not-broadcast", 3));
  CHECK(apart.metrics.at("buffers equal") == 0);
  CHECK(apart.warnings.count("buffers_differ") == 1);
  const Trained synced = train("threads", narrow("sync-batch-norm", 3));
  CHECK(synced.metrics.at("buffers equal") == 1);
  CHECK(synced.warnings.count("buffers_differ") == 0);
  CHECK(synced.metrics.at("accuracy") == synced.metrics.at("accuracy, worst rank"));
}

TEST_CASE("a look at one image on rank 0 alone, without eval(), is reported with its line") {
  const lab::FormOutcome outcome = test::run_form_of("resnet", "look-on-one-rank", 1, "32-true");
  CHECK(outcome.expected);
  CHECK_MESSAGE(test::contains(outcome.error.text, "resnet.cpp:"), outcome.error.text);
}

TEST_CASE("a narrow ResNet-18 reads the held-out digits") {
  lab::TrainOptions options = narrow("sync-batch-norm", 0);
  options.epochs = 8;
  options.width = 8;
  CHECK(train("threads", options).metrics.at("accuracy") >= 0.95);
}

TEST_CASE("images come from a folder of CIFAR-10, and a training on them resumes bit for bit inside an epoch") {
  const test::TemporaryFolder folder;
  for (int i = 1; i <= 5; ++i)
    std::ofstream(folder / ("data_batch_" + std::to_string(i) + ".bin"), std::ios::binary) << test::cifar_records(8, i);
  std::ofstream(folder / "test_batch.bin", std::ios::binary) << test::cifar_records(10, 0);
  lab::TrainOptions options = narrow("sync-batch-norm", 7);
  options.data = folder.text();
  options.width = 2;
  options.global_batch = 8;  // 5 steps in an epoch
  const Trained whole = train("threads", options);
  CHECK(whole.loss.size() == 7);
  options.steps = 3;
  options.checkpoint = folder / "resnet.ckpt";
  const Trained first = train("threads", options);
  options.steps = 7;
  options.resume = options.checkpoint;
  const Trained second = train("threads", options);
  std::vector<double> losses = first.loss;
  losses.insert(losses.end(), second.loss.begin(), second.loss.end());
  CHECK(losses == whole.loss);
  CHECK(second.metrics == whole.metrics);
}

TEST_CASE("--data and --width are refused where they mean nothing, and a folder without images is named") {
  const test::Outcome other = test::run_program("train digits --width 8");
  CHECK(other.status != 0);
  CHECK_MESSAGE(test::contains(other.output, "the recipe digits has images and a width of its own"), other.output);
  const test::Outcome missing = test::run_program("train resnet --quiet --data /nowhere/cifar");
  CHECK(missing.status != 0);
  CHECK_MESSAGE(test::contains(missing.output, "/nowhere/cifar"), missing.output);
}

}  // namespace brigade::test::resnet_test
