// A warning of any rank is reported once, by rank 0, with the ranks that raised it.
#include "on_ranks.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/warning.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <functional>
#include <mutex>
#include <optional>

namespace brigade::test::rank_warnings_test {
namespace {

// Three steps, without zero_grad() on the ranks for which `forgets` is true.
void train(const dist::ProcessGroupPtr& group, const std::function<bool(int rank)>& forgets,
           const dist::DDPOptions& options = {}) {
  nn::Linear net(3, 2);
  dist::DistributedDataParallel ddp(net, group, options);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    // Zeros are as good, and the ranks step alike.
    if (!forgets(group->rank())) optimizer.zero_grad();
    mean(square(ddp(ones({4, 3})))).backward();
    optimizer.step();
  }
}

std::vector<std::string> told_on_threads(int ranks, const std::function<void(const dist::ProcessGroupPtr&)>& body) {
  std::mutex mutex;
  std::vector<std::string> told;
  const auto before = set_warning_handler([&](const Warning& warning) {
    const std::lock_guard lock(mutex);
    told.push_back(warning.message);
  });
  test::expect_well("threads", ranks, [&](const dist::ProcessGroupPtr& group) {
    body(group);
    return std::string();
  });
  set_warning_handler(before);
  return told;
}

}  // namespace

TEST_CASE("a warning of one rank, of some and of all is reported once, with its ranks") {
  const auto told = [](const std::function<bool(int)>& forgets) {
    return told_on_threads(3, [&](const dist::ProcessGroupPtr& group) { train(group, forgets); });
  };
  const auto starts = [](const std::vector<std::string>& all, const std::string& words) {
    return all.size() == 1 && all[0].starts_with(words) && all[0].find("no zero_grad()") != std::string::npos;
  };
  CHECK(told([](int) { return false; }).empty());
  CHECK(starts(told([](int rank) { return rank == 2; }), "rank 2: "));
  CHECK(starts(told([](int rank) { return rank != 1; }), "ranks 0 and 2: "));
  CHECK(starts(told([](int) { return true; }), "ranks 0, 1 and 2: "));
}

TEST_CASE("where no step brings the ranks together, each rank tells its own") {
  const auto told = told_on_threads(2, [](const dist::ProcessGroupPtr& group) {
    train(group, [](int rank) { return rank == 1; });
    nn::Linear net(3, 2);
    dist::DistributedDataParallel ddp(net, group);
    // Edited between two backwards, the first of which is local; no step follows.
    {
      const auto local = ddp.no_sync();
      mean(square(ddp(ones({4, 3})))).backward();
    }
    if (group->rank() == 1) net->weight.grad().mul_(2.0);
    mean(square(ddp(ones({4, 3})))).backward();
  });
  REQUIRE(told.size() == 2);
  CHECK(told[0].starts_with("rank 1: "));
  CHECK(told[1].starts_with("rank 1: "));
  CHECK(told[1].find("mul_") != std::string::npos);
}

TEST_CASE("what a process warns of besides comes to rank 0, which tells it once") {
  const auto ranks = test::run_ranks("shm", 3, [](const dist::ProcessGroupPtr& group) {
    std::string told;
    if (group->rank() == 0) {
      set_warning_handler([&](const Warning& warning) { told += warning.message + ";"; });
    } else {
      hold_warnings(group->rank());
    }
    tell({"everybody's", "an advice"});
    if (group->rank() == 2) warn({"of one", "an advice"});
    train(group, [](int) { return false; });
    set_warning_handler({});
    if (has_held_warnings()) told += " (some are held)";
    return told;
  });
  REQUIRE(ranks.size() == 3);
  CHECK(ranks[0].result == "everybody's;rank 2: of one;");
  CHECK(ranks[1].result == "");
  CHECK(ranks[2].result == "");
}

namespace {

// All warnings of two ranks.
std::string told(const std::function<void(const dist::ProcessGroupPtr&)>& body) {
  std::string all;
  for (const std::string& message : told_on_threads(2, body))
    all += message + ";";
  return all;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Tensor batch_of(const dist::ProcessGroupPtr& group) { return full({4, 3}, 1.0 + group->rank()); }

}  // namespace

TEST_CASE("steps without a backward are reported; those with one are not") {
  CHECK(contains(told([](const dist::ProcessGroupPtr& group) {
                   nn::Linear net(3, 2);
                   dist::DistributedDataParallel ddp(net, group);
                   optim::SGD optimizer(net->parameters(), {.lr = 0.1});
                   mean(square(net(batch_of(group)))).detach();
                   optimizer.step();
                 }),
                 "ranks 0 and 1: SGD.step() at"));
  const std::string again = told([](const dist::ProcessGroupPtr& group) {
    nn::Linear net(3, 2);
    dist::DistributedDataParallel ddp(net, group);
    optim::SGD optimizer(net->parameters(), {.lr = 0.1});
    mean(square(ddp(batch_of(group)))).backward();
    optimizer.step();
    optimizer.step();
  });
  CHECK(contains(again, "uses the same gradients again"));
  // Two optimizers that take turns, and one whose part no rank has used yet.
  CHECK(told([](const dist::ProcessGroupPtr& group) {
          nn::Sequential net(nn::Linear(3, 3), nn::Linear(3, 2));
          nn::Linear other(3, 2);
          dist::DistributedDataParallel ddp(net, group);
          dist::DistributedDataParallel ddp_of_other(other, group, {.find_unused_parameters = true});
          optim::SGD optimizer(net->parameters(), {.lr = 0.1});
          optim::SGD of_other(other->parameters(), {.lr = 0.1});
          for (int step = 0; step < 3; ++step) {
            optimizer.zero_grad();
            mean(square(ddp(batch_of(group)))).backward();
            optimizer.step();
            if (step == 0) continue;
            of_other.zero_grad();
            mean(square(ddp_of_other(batch_of(group)))).backward();
            of_other.step();
          }
        }) == "");
}

TEST_CASE("a gradient that the wrapper has averaged is reported when it is all-reduced by hand") {
  enum class Then { Nothing, Local, Divide };
  const auto train_by_hand = [](dist::ReduceOp op, Then then) {
    return told([op, then](const dist::ProcessGroupPtr& group) {
      nn::Linear net(3, 2);
      dist::DistributedDataParallel ddp(net, group);
      optim::SGD optimizer(net->parameters(), {.lr = 0.1});
      std::optional<dist::DistributedDataParallel<nn::Linear>::NoSync> no_sync;
      if (then == Then::Local) no_sync.emplace(ddp.no_sync());
      mean(square(ddp(batch_of(group)))).backward();
      for (const Tensor& parameter : net->parameters())
        group->all_reduce(parameter.grad(), {.op = op})->wait();
      for (const Tensor& parameter : net->parameters())
        if (then == Then::Divide) parameter.grad().div_(2);
      optimizer.step();
    });
  };
  using dist::ReduceOp;
  const std::string averaged = train_by_hand(ReduceOp::Avg, Then::Nothing);
  CHECK(contains(averaged, "Reduced twice: weight, bias, before the step at"));
  CHECK(contains(averaged, "the program's all_reduce(avg) at line"));
  CHECK(contains(averaged, "followed, which changes nothing"));
  const std::string summed = train_by_hand(ReduceOp::Sum, Then::Nothing);
  CHECK(contains(summed, "the program's all_reduce(sum) at line"));
  CHECK(contains(summed, "followed: they are 2 times too large"));
  CHECK(contains(train_by_hand(ReduceOp::Sum, Then::Divide), "followed, and div_ at line"));
  CHECK(train_by_hand(ReduceOp::Avg, Then::Local) == "");
}

TEST_CASE("parameters that no optimizer holds are reported after eight backwards, those of another optimizer are not") {
  const auto train_with = [](const std::function<std::vector<Tensor>(nn::Sequential&)>& held, bool with_rest) {
    return told([&](const dist::ProcessGroupPtr& group) {
      nn::Sequential net(nn::Linear(3, 3), nn::Linear(3, 2));
      dist::DistributedDataParallel ddp(net, group);
      optim::SGD optimizer(held(net), {.lr = 0.01});
      std::optional<optim::SGD> rest;  // steps later
      if (with_rest) rest.emplace(std::vector<Tensor>(net->parameters()), optim::SGDOptions{.lr = 0.01});
      for (int step = 0; step < 36; ++step) {
        net->zero_grad();
        mean(square(ddp(batch_of(group)))).backward();
        optimizer.step();
      }
    });
  };
  const auto first_weight = [](nn::Sequential& net) { return std::vector<Tensor>{net->parameters().front()}; };
  const auto all = [](nn::Sequential& net) { return net->parameters(); };
  CHECK(contains(train_with(first_weight, false),
                 "Averaged in every backward, but never moved: 0.bias, 1.weight, 1.bias"));
  CHECK(train_with(first_weight, true) == "");
  CHECK(train_with(all, false) == "");
}

TEST_CASE("an optimizer that holds a replaced parameter is reported where unused ones are allowed") {
  const auto train_after = [](bool replaced) {
    return told([replaced](const dist::ProcessGroupPtr& group) {
      nn::Sequential net(nn::Linear(3, 3), nn::Linear(3, 2));
      dist::DistributedDataParallel ddp(net, group, {.find_unused_parameters = true});
      optim::SGD optimizer(net->parameters(), {.lr = 0.1});
      if (replaced) net->replace_module("1", nn::Linear(3, 2));
      for (int step = 0; step < 2; ++step) {
        optimizer.zero_grad();
        mean(square(ddp(batch_of(group)))).backward();
        optimizer.step();
      }
    });
  };
  const std::string said = train_after(true);
  CHECK(contains(said, "SGD (made at "));
  CHECK(contains(said, "holds `1.weight`, which the module no longer has, before its step at line "));
  CHECK(contains(said, "the module has had another one since line "));
  CHECK(train_after(false) == "");
}

}  // namespace brigade::test::rank_warnings_test
