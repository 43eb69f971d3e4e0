// Subgroups over NCCL: they split the communicator of their parent group, or make their own if the parent has none yet.
#include "device_collectives.h"
#include "on_gpus.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/groups/new_group.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <thread>

#ifndef BRIGADE_REAL_CUDA
extern "C" size_t nccl_stand_in_parts();
#endif

namespace brigade::test::nccl_new_group_test {
namespace {

using dist::new_group;
using dist::ProcessGroupPtr;

constexpr int kRanks = 4;

// The number of communicators made by splitting, which only the stand-in reports.
size_t parts_made() {
#ifndef BRIGADE_REAL_CUDA
  return nccl_stand_in_parts();
#else
  return 0;
#endif
}

// Gives the group a communicator.
void connect(const ProcessGroupPtr& group, Device device) {
  const Tensor x = filled(1, {4}, kFloat32, device);
  group->all_reduce(x)->wait();
  all_are(x, kRanks);
}

// The groups {0, 1} and {2, 3}.
struct Pairs {
  explicit Pairs(const ProcessGroupPtr& group)
      : low(new_group(group, {0, 1})),
        high(new_group(group, {2, 3})),
        own(group->rank() < 2 ? low : high),
        other(group->rank() < 2 ? high : low) {}
  ProcessGroupPtr low, high, own, other;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("subgroups are parts of the communicator of their group where it has one, and do every collective") {
  for (const bool connected : {true, false}) {
    CAPTURE(connected);
    [[maybe_unused]] const size_t before = parts_made();  // not counted on real GPUs
    if (!on_gpus(kRanks, [&](const ProcessGroupPtr& group, Device device) {
          if (connected) connect(group, device);
          const Pairs pairs(group);
          CHECK(std::string(pairs.own->backend()) == "nccl");
          CHECK(pairs.own->rank() == group->rank() % 2);
          check_collectives(*pairs.own, device, {kFloat32, kFloat16, kInt64});
          check_stream_order(*pairs.own, device);
          check_collectives(*group, device, {kFloat64});
          // A group of one rank, split from a split group.
          const ProcessGroupPtr alone = new_group(pairs.own, {1});
          if (group->rank() % 2 == 0) return;
          const Tensor x = filled(3, {4}, kFloat32, device);
          alone->all_reduce(x)->wait();
          all_are(x, 3);
          CHECK(dist::get_global_rank(alone, 0) == group->rank());
        }))
      return;
#ifndef BRIGADE_REAL_CUDA
    CHECK(parts_made() - before == (connected ? kRanks : 0));
#endif
  }
}

TEST_CASE("collectives of two subgroups and of their group are under way at once, in another order on each pair") {
  on_gpus(kRanks, [](const ProcessGroupPtr& group, Device device) {
    const int rank = group->rank();
    connect(group, device);
    const Pairs pairs(group);
    const int first = rank / 2 * 2;
    struct Posted {
      Tensor x;
      dist::WorkPtr work;
      double expected;
    };
    std::vector<Posted> all;
    for (int i = 0; i < 20; ++i) {
      const auto in_pair = [&] {
        const Tensor x = filled(100 * rank + i, {300}, kFloat32, device);
        all.push_back({x, pairs.own->all_reduce(x), 100.0 * (2 * first + 1) + 2 * i});
      };
      if (rank < 2) in_pair();
      const Tensor x = filled(rank + i, {500}, kFloat32, device);
      all.push_back({x, group->all_reduce(x), 6.0 + 4 * i});
      if (rank >= 2) in_pair();
      const Tensor sent = filled(1000 * rank + i, {64}, kFloat32, device);
      all.push_back({sent, pairs.own->broadcast(sent, {.root = 1}), 1000.0 * (first + 1) + i});
    }
    for (size_t i = all.size(); i-- > 0;) {
      all[i].work->wait();
      all_are(all[i].x, all[i].expected);
    }
  });
}

TEST_CASE("DDP over pairs of devices averages gradients inside each pair only") {
  const auto make_net = [](uint64_t seed) {
    manual_seed(seed);
    return nn::Linear(nn::LinearOptions{.in_features = 4, .out_features = 3, .dtype = kFloat64});
  };
  const auto batch_of = [](int rank, int step) {
    return numbers({5, 4}, kFloat64, static_cast<uint64_t>(50 + 10 * step + rank));
  };
  const auto loss_of = [](const Tensor& y) { return mean(square(y - 1.0)); };
  // Each pair starts from the weights of its first rank.
  std::vector<std::vector<Tensor>> expected;
  for (const int first : {0, 2}) {
    nn::Linear net = make_net(static_cast<uint64_t>(7 + first));
    optim::SGD sgd(net->parameters(), {.lr = 0.1, .momentum = 0.9});
    for (int step = 0; step < 3; ++step) {
      sgd.zero_grad();
      ((loss_of(net(batch_of(first, step))) + loss_of(net(batch_of(first + 1, step)))) * 0.5).backward();
      sgd.step();
    }
    expected.push_back(net->parameters());
  }
  CHECK(difference(expected[0][0], expected[1][0]) > 0.01);
  on_gpus(kRanks, [&](const ProcessGroupPtr& group, Device device) {
    const int rank = group->rank();
    connect(group, device);
    const Pairs pairs(group);
    nn::Linear net = make_net(static_cast<uint64_t>(7 + rank));
    net->to(device);
    dist::DistributedDataParallel ddp(net, pairs.own);
    optim::SGD sgd(net->parameters(), {.lr = 0.1, .momentum = 0.9});
    for (int step = 0; step < 3; ++step) {
      sgd.zero_grad();
      loss_of(ddp(batch_of(rank, step).to(device))).backward();
      sgd.step();
    }
    const std::vector<Tensor>& alone = expected[static_cast<size_t>(rank / 2)];
    for (size_t i = 0; i < alone.size(); ++i)
      CHECK(difference(net->parameters()[i].to(kCPU), alone[i]) < 1e-12);
  });
}

TEST_CASE("a rank that does not call new_group is named, and no device waits for it") {
  std::vector<std::string> errors(kRanks);
  try {
    on_gpus(
        kRanks,
        [&](const ProcessGroupPtr& group, Device device) {
          connect(group, device);
          if (group->rank() == 3) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1500));
            return;
          }
          try {
            new_group(group, {0, 1});
          } catch (const TimeoutError& error) {
            errors[static_cast<size_t>(group->rank())] = error.what();
            throw;
          }
        },
        std::chrono::milliseconds(400));
  } catch (const std::exception&) {
  }
  if (device_count(DeviceType::CUDA) < kRanks) return;
  CHECK_MESSAGE(has(errors[0], "\"new_group\""), errors[0]);
  CHECK_MESSAGE(has(errors[0], "Rank 3 did not come to"), errors[0]);
  CHECK_MESSAGE(has(errors[0], "nccl_new_group_test.cpp:"), errors[0]);
}

TEST_CASE("who is no member is informed, for tensors of a device too, and goes on in the group") {
  on_gpus(kRanks, [](const ProcessGroupPtr& group, Device device) {
    connect(group, device);
    const Pairs pairs(group);
    CHECK(pairs.other->rank() == -1);
    const Tensor x = filled(1, {4}, kFloat32, device);
    const std::string members = group->rank() < 2 ? "2, 3" : "0, 1";
    CHECK_THROWS_WITH_AS(
        pairs.other->all_reduce(x)->wait(),
        doctest::Contains(
            fmt::format("rank {} is not a member of the group of ranks {}", group->rank(), members).c_str()),
        DistError);
    all_are(x, 1);
    connect(group, device);
  });
}

TEST_CASE("a subgroup outlives its group, and the group its subgroups") {
  on_gpus(kRanks, [](ProcessGroupPtr group, Device device) {
    connect(group, device);
    const int rank = group->rank();
    {
      const Pairs gone(group);
      check_collectives(*gone.own, device, {kFloat32});
    }
    connect(group, device);
    const Pairs pairs(group);
    group.reset();
    const Tensor x = filled(rank, {4}, kFloat32, device);
    pairs.own->all_reduce(x)->wait();
    all_are(x, rank < 2 ? 1 : 5);
    check_collectives(*pairs.own, device, {kFloat32});
  });
}

}  // namespace brigade::test::nccl_new_group_test
