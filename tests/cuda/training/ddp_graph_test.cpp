// A training step of DistributedDataParallel over NCCL as one CUDA graph: forward, backward, all-reduce, optimizer.
#include "on_device.h"
#include "replayed_steps.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/cuda/graph.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/zero_redundancy_optimizer.h>
#include <brigade/optim/optim.h>
#include <dist/nets.h>

namespace brigade::test::ddp_graph_test {
namespace {

using Values = std::vector<std::vector<double>>;

enum class Mover : uint8_t { Sgd, ZeroAdamW };

std::unique_ptr<optim::Optimizer> optimizer_of(Mover mover, const BranchingNet& net,
                                               const dist::ProcessGroupPtr& group) {
  if (mover == Mover::Sgd)
    return std::make_unique<optim::SGD>(net->parameters(), optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
  return std::make_unique<dist::ZeroRedundancyOptimizer<optim::AdamW>>(
      net->parameters(), optim::AdamWOptions{.lr = 0.1, .capturable = true}, group);
}

struct Training {
  BranchingNet net;
  std::unique_ptr<dist::DistributedDataParallel<BranchingNet>> ddp;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::StepLR> schedule;  // halves AdamW's learning rate
  Tensor x;
  int rank;

  Training(const dist::ProcessGroupPtr& group, Device device, const dist::DDPOptions& options, Mover mover = Mover::Sgd)
      : rank(group->rank()) {
    manual_seed(11);
    net = BranchingNet();
    net->to(device);
    x = zeros({6, 4}).to(device);
    ddp = std::make_unique<dist::DistributedDataParallel<BranchingNet>>(net, group, options);
    optimizer = optimizer_of(mover, net, group);
    schedule = std::make_unique<optim::StepLR>(*optimizer, 1, mover == Mover::Sgd ? 1 : 0.5);
  }
  void set_batch(int step) {
    if (step > 0) schedule->step();
    kernels::copy(x, numbers({6, 4}, kFloat32, static_cast<uint64_t>(10 * step + rank + 1)));
  }
  void step() {
    optimizer->zero_grad();
    const Tensor y = (*ddp)(x);
    (y * y).mean().backward();
    optimizer->step();
  }
  Values state() const {
    Values values;
    for (const Tensor& parameter : net->parameters())
      values.push_back(parameter.to_vector<double>());
    return values;
  }
};

// One more eager step follows the replays.
std::vector<std::vector<Values>> states(int ranks, const dist::DDPOptions& options, bool captured,
                                        Mover mover = Mover::Sgd) {
  return states_of(
      ranks, {.count = 6, .warm_up = 2, .beside = 1}, captured,
      [&](const dist::ProcessGroupPtr& group, Device device) { return Training(group, device, options, mover); });
}

}  // namespace

TEST_CASE("replays of a captured DDP step leave on every rank what the steps by themselves leave, to the bit") {
  for (const int ranks : {1, 2, 4}) {
    if (!has_gpus_for(ranks)) continue;
    for (const double bucket_mb : {25.0, 1e-6}) {
      for (const bool as_view : {true, false}) {
        CAPTURE(ranks);
        CAPTURE(bucket_mb);
        CAPTURE(as_view);
        dist::DDPOptions options;
        options.bucket_cap_mb = options.first_bucket_mb = bucket_mb;
        options.gradient_as_bucket_view = as_view;
        const auto plain = states(ranks, options, false);
        const auto captured = states(ranks, options, true);
        check_same_states(captured, plain);
        for (const auto& of_rank : plain)
          CHECK(of_rank == plain[0]);
        CHECK(plain[0].front() != plain[0].back());
      }
    }
  }
}

TEST_CASE("replays of a step whose optimizer states are dealt out leave what the steps leave, and follow a schedule") {
  for (const int ranks : {1, 2, 4}) {
    if (!has_gpus_for(ranks)) continue;
    CAPTURE(ranks);
    const auto plain = states(ranks, {}, false, Mover::ZeroAdamW);
    const auto captured = states(ranks, {}, true, Mover::ZeroAdamW);
    check_same_states(captured, plain);
    for (const auto& of_rank : plain)
      CHECK(of_rank == plain[0]);
    CHECK(plain[0][2] != plain[0][3]);
  }
}

TEST_CASE("in a world of one a captured DDP step launches what the step without DDP launches, and nothing more") {
  on_gpus(1, [](const dist::ProcessGroupPtr& group, Device device) {
    Training wrapped(group, device, {});
    BranchingNet net;
    net->to(device);
    optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
    const auto plain_step = [&] {
      optimizer.zero_grad();
      const Tensor y = net(wrapped.x);
      (y * y).mean().backward();
      optimizer.step();
    };
    for (int i = 0; i < 2; ++i) {
      wrapped.step();
      plain_step();
    }
    cuda::Graph with;
    cuda::Graph without;
    with.capture([&] { wrapped.step(); });
    without.capture(plain_step);
    CHECK(without.nodes() > 10);
    CHECK(with.nodes() == without.nodes());
  });
}

}  // namespace brigade::test::ddp_graph_test
