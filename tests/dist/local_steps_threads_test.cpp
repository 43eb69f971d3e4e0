// A communication hook that leaves gradients local is reported unless the parameters are averaged, however late.
#include "on_ranks.h"

#include <brigade/amp/grad_scaler.h>
#include <brigade/autograd/functional.h>
#include <brigade/core/warning.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/model_averaging.h>
#include <brigade/dist/ddp/zero_redundancy_optimizer.h>
#include <brigade/dist/fabric/fabric.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <core/temporary_folder.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <mutex>
#include <optional>

namespace brigade::test::local_steps_threads_test {
struct Said {
  std::vector<std::string> texts;
  std::mutex mutex;
  std::function<void(const Warning&)> before = set_warning_handler([this](const Warning& warning) {
    const std::lock_guard lock(mutex);
    texts.push_back(warning.message);
  });
  Said() = default;
  Said(const Said&) = delete;
  Said& operator=(const Said&) = delete;
  ~Said() { set_warning_handler(before); }
};

// Two layers, the second of which may be unused.
struct NetImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  bool uses_b = true;
  NetImpl() {
    a = register_module("a", nn::Linear(3, 3));
    b = register_module("b", nn::Linear(3, 3));
  }
  Tensor forward(const Tensor& x) { return uses_b ? b(a(x)) : a(x); }
};
BRIGADE_MODULE(Net);

enum class By {
  Nobody,
  NobodyAndOneIsUnused,
  Averager,
  AveragerAndClipping,
  AveragerAndScaler,
  HandInOnePiece,
  HandEach,
  HandWhenTheWrapperIsGone,
  Gradients,
  Zero,
  GlobalSteps,
  OneStepAlone
};

std::vector<std::string> said_of(By by, int steps = 6) {
  Said said;
  test::expect_well("threads", 2, [&](const dist::ProcessGroupPtr& group) -> std::string {
    Net net;
    net->uses_b = by != By::NobodyAndOneIsUnused;
    std::optional<dist::DistributedDataParallel<Net>> ddp;
    ddp.emplace(net, group,
                dist::DDPOptions{.find_unused_parameters = !net->uses_b, .verify_every = by == By::Averager ? 1 : 0});
    ddp->register_comm_hook(dist::post_local_sgd_hook(by == By::GlobalSteps ? 100 : by == By::Gradients ? 0 : 1));
    std::optional<dist::ZeroRedundancyOptimizer<optim::SGD>> zero;
    optim::SGD sgd(net->parameters(), {.lr = 1e-4});
    optim::Adam adam(net->parameters(), {.lr = 1e-4});
    if (by == By::Zero) zero.emplace(net->parameters(), optim::SGDOptions{.lr = 1e-4}, group);
    optim::Optimizer& optimizer = zero          ? static_cast<optim::Optimizer&>(*zero)
                                  : net->uses_b ? sgd
                                                : static_cast<optim::Optimizer&>(adam);
    dist::PeriodicModelAverager averager(group, 3, 2);
    amp::GradScaler scaler(amp::GradScalerOptions{.init_scale = 8});
    for (int step = 0; step < (by == By::OneStepAlone ? 2 : steps); ++step) {
      optimizer.zero_grad();
      const Tensor loss = (*ddp)(full({2, 3}, 1.0 + step + group->rank())).mean();
      (by == By::AveragerAndScaler ? scaler.scale(loss) : loss).backward();
      for (const Tensor& parameter : net->parameters()) {
        if (by == By::Gradients) group->all_reduce(parameter.grad(), {.op = dist::ReduceOp::Avg})->wait();
      }
      if (by == By::AveragerAndClipping) optim::clip_grad_norm_(net->parameters(), 0.01);
      if (by == By::AveragerAndScaler) {
        scaler.unscale_(optimizer);
        scaler.step(optimizer);
        scaler.update();
      } else {
        optimizer.step();
      }
      if (by == By::Averager || by == By::AveragerAndClipping || by == By::AveragerAndScaler)
        averager.average_parameters(net);
      if (step != 4) continue;
      if (by == By::HandInOnePiece) dist::average_parameters(*group, net->parameters());
      const NoGradGuard no_grad;
      for (const Tensor& parameter : net->parameters())
        if (by == By::HandEach) group->all_reduce(parameter, {.op = dist::ReduceOp::Avg})->wait();
    }
    ddp.reset();
    if (by == By::HandWhenTheWrapperIsGone) dist::average_parameters(*group, net->parameters());
    return "";
  });
  return said.texts;
}

bool is_told(const std::string& text) {
  return text.starts_with("Each rank trains a model of its own: DDP(Net), since ") &&
         text.find(".step() at ") != std::string::npos &&
         text.find("local_steps_threads_test.cpp:") != std::string::npos &&
         text.find("hook post_local_sgd lets the gradients stay local") != std::string::npos;
}

TEST_CASE("a hook that lets gradients stay local is reported at the end, where nothing has averaged the parameters") {
  for (const By by : {By::Nobody, By::NobodyAndOneIsUnused}) {
    CAPTURE(static_cast<int>(by));
    const std::vector<std::string> said = said_of(by);
    REQUIRE(said.size() == 1);
    CHECK_MESSAGE(is_told(said[0]), said[0]);
    CHECK(said[0].find("all local steps so far") != std::string::npos);
  }
}

TEST_CASE("a hook that lets gradients stay local is no matter where something averages, however late") {
  for (const By by : {By::Averager, By::AveragerAndClipping, By::AveragerAndScaler, By::HandInOnePiece, By::HandEach,
                      By::HandWhenTheWrapperIsGone, By::Gradients, By::Zero, By::GlobalSteps, By::OneStepAlone}) {
    CAPTURE(static_cast<int>(by));
    const std::vector<std::string> said = said_of(by);  // must not throw, either
    CHECK(fmt::format("{}", fmt::join(said, "\n")) == "");
  }
}

// A hook that was registered for a measurement and forgotten.
TEST_CASE("noop_hook is reported where training ends, unless something has averaged the parameters") {
  for (const bool averages : {false, true}) {
    Said said;
    test::expect_well("threads", 2, [&](const dist::ProcessGroupPtr& group) -> std::string {
      Net net;
      dist::DistributedDataParallel<Net> ddp(net, group);
      ddp.register_comm_hook(dist::noop_hook());
      optim::SGD optimizer(net->parameters(), {.lr = 1e-4});
      for (int step = 0; step < 4; ++step) {
        optimizer.zero_grad();
        ddp(full({2, 3}, 1.0 + step + group->rank())).mean().backward();
        optimizer.step();
        if (averages) dist::average_parameters(*group, net->parameters());
      }
      return "";
    });
    REQUIRE(said.texts.size() == (averages ? 0 : 1));
    if (averages) continue;
    CHECK(said.texts[0].find("the communication hook noop lets the gradients stay local") != std::string::npos);
    CHECK(said.texts[0].find("local_steps_threads_test.cpp:") != std::string::npos);
  }
}

TEST_CASE("a hook that lets gradients stay local is reported after a thousand steps without an average") {
  const std::vector<std::string> said = said_of(By::Nobody, 1001);
  REQUIRE(said.size() == 1);
  CHECK_MESSAGE(is_told(said[0]), said[0]);
  CHECK(said[0].find("in 1000 steps nothing") != std::string::npos);
}

TEST_CASE("a hook that lets gradients stay local is reported when a Fabric saves a model that nothing has averaged") {
  Said said;
  size_t early = 0, late = 0;
  const TemporaryFolder folder;
  dist::Fabric(dist::FabricOptions{.accelerator = "cpu", .devices = 2}).launch([&](dist::Fabric& fabric) {
    Net net;
    optim::SGD sgd(net->parameters(), {.lr = 1e-4});
    auto [model, optimizer] = fabric.setup(net, sgd);
    model.ddp()->register_comm_hook(dist::post_local_sgd_hook(0));
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      fabric.backward(model(ones({2, 3})).mean());
      optimizer.step();
    }
    fabric.barrier();
    fabric.rank_zero_only([&] { early = said.texts.size(); });
    fabric.barrier();
    optim::Checkpoint checkpoint = fabric.checkpoint();
    checkpoint.module("model", *net);
    fabric.save(folder / "model", checkpoint);
    fabric.rank_zero_only([&] { late = said.texts.size(); });
    fabric.barrier();
  });
  CHECK(early == 0);
  CHECK(late == 1);
  REQUIRE(said.texts.size() == 1);
  CHECK_MESSAGE(is_told(said.texts[0]), said.texts[0]);
}

}  // namespace brigade::test::local_steps_threads_test
