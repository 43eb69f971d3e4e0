// Learning rate schedulers as parts of a checkpoint.
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/checkpoint.h>
#include <brigade/optim/lr_scheduler.h>
#include <brigade/optim/sgd.h>
#include <core/error_of.h>
#include <core/temporary_folder.h>

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace brigade::test::checkpoint_scheduler_test {

using MakeScheduler = std::function<std::unique_ptr<optim::LRScheduler>(optim::Optimizer&)>;

// An optimizer and its scheduler.
struct Job {
  nn::Linear net{2, 1};
  optim::SGD sgd{net->parameters(), {.lr = 0.1, .momentum = 0.9}};
  std::unique_ptr<optim::LRScheduler> scheduler;
  optim::Checkpoint checkpoint;

  explicit Job(const MakeScheduler& make) : scheduler(make(sgd)) {
    checkpoint.optimizer("sgd", sgd).scheduler("rate", *scheduler);
  }
  std::vector<double> rates(int steps) {
    std::vector<double> rates;
    for (int i = 0; i < steps; ++i) {
      scheduler->step();
      rates.push_back(sgd.lr());
    }
    return rates;
  }
};

const MakeScheduler kStep = [](optim::Optimizer& sgd) { return std::make_unique<optim::StepLR>(sgd, 3, 0.5); };
const MakeScheduler kCosine = [](optim::Optimizer& sgd) {
  return std::make_unique<optim::CosineAnnealingLR>(sgd, 20, 0.001);
};

TEST_CASE("a schedule that was saved and loaded goes on with the same rates") {
  const TemporaryFolder folder;
  const std::string path = folder / "job";
  for (const auto& [name, make] : {std::pair{"StepLR", kStep}, std::pair{"CosineAnnealingLR", kCosine}}) {
    CAPTURE(name);
    Job job(make);
    job.rates(4);
    job.checkpoint.save(path);
    const std::vector<double> expected = job.rates(7);
    Job resumed(make);
    resumed.rates(2);
    resumed.checkpoint.load(path);
    CHECK(resumed.scheduler->last_epoch() == 4);
    CHECK(resumed.rates(7) == expected);
  }
}

TEST_CASE("a plateau goes on with its count of bad epochs and its best measure, which may be infinite") {
  const TemporaryFolder folder;
  const std::string path = folder / "job";
  for (const int before : {0, 2}) {
    CAPTURE(before);
    nn::Linear net(2, 1), other(2, 1);
    optim::SGD sgd(net->parameters(), {.lr = 0.1}), sgd2(other->parameters(), {.lr = 0.5});
    optim::ReduceLROnPlateau plateau(sgd, {.patience = 1}), resumed(sgd2, {.patience = 1});
    optim::Checkpoint checkpoint, loading;
    checkpoint.optimizer("sgd", sgd).scheduler("plateau", plateau);
    loading.optimizer("sgd", sgd2).scheduler("plateau", resumed);
    for (int i = 0; i < before; ++i)
      plateau.step(1.0);
    resumed.step(0.001);
    checkpoint.save(path);
    loading.load(path);
    CHECK(resumed.best() == plateau.best());
    plateau.step(1.0);
    resumed.step(1.0);
    CHECK(sgd.lr() == doctest::Approx(before == 2 ? 0.01 : 0.1));
    CHECK(sgd2.lr() == sgd.lr());
  }
}

TEST_CASE("a schedule of another kind is named, and then nothing has been changed") {
  const TemporaryFolder folder;
  const std::string path = folder / "job";
  Job saved(kStep);
  saved.rates(4);
  saved.checkpoint.save(path);
  Job other(kCosine);
  const std::vector<double> before = other.rates(3);
  const std::string message = error_of([&] { other.checkpoint.load(path); });
  CAPTURE(message);
  CHECK(message.find("part \"rate\": ") != std::string::npos);
  CHECK(message.find("StepLR") != std::string::npos);
  CHECK(message.find("CosineAnnealingLR") != std::string::npos);
  CHECK(other.scheduler->last_epoch() == 3);
  CHECK(other.sgd.lr() == before.back());

  optim::Checkpoint as_optimizer;
  as_optimizer.optimizer("rate", other.sgd).scheduler("sgd", *other.scheduler);
  const std::string kinds = error_of([&] { as_optimizer.load(path); });
  CHECK(kinds.find("\"rate\" is of kind \"scheduler\", expected optimizer") != std::string::npos);
}

}  // namespace brigade::test::checkpoint_scheduler_test
