// Mechanisms around DDP on a device, compared with the CPU: buffers, synchronized batch norm, ZeRO, model averaging,
// comparison of ranks.
#include "on_device.h"

#include <near.h>

#include <brigade/autograd/functional.h>
#include <brigade/core/device_runtime.h>
#include <brigade/dist/checks/values.h>
#include <brigade/dist/comm_hooks/comm_hook.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/model_averaging.h>
#include <brigade/dist/ddp/sync_batch_norm.h>
#include <brigade/dist/ddp/zero_redundancy_optimizer.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <mutex>

namespace brigade::test::mechanisms_test {
namespace {

using Values = std::vector<std::vector<double>>;
// The final values of a rank, computed on its device.
using Body = std::function<Values(const dist::ProcessGroupPtr& group, Device device)>;

Values values_of(const std::vector<Tensor>& tensors) {
  Values values;
  for (const Tensor& tensor : tensors)
    values.push_back(tensor.to_vector<double>());
  return values;
}

std::vector<Values> run(const std::string& where, int ranks, const Body& body) {
  std::vector<Values> results(static_cast<size_t>(ranks));
  dist::run_threads(ranks, [&](const dist::ProcessGroupPtr& threads) {
    const Device device = choose_device(where == "nccl" ? "cuda" : where, threads->rank());
    set_current_device(device);
    const dist::ProcessGroupPtr group = where == "nccl" ? dist::make_nccl_group(threads) : threads;
    results[static_cast<size_t>(group->rank())] = body(group, device);
  });
  return results;
}

void compare(const std::vector<Values>& here, const std::vector<Values>& there, double bound) {
  double worst = 0;
  for (size_t rank = 0; rank < here.size(); ++rank) {
    REQUIRE(there[rank].size() == here[rank].size());
    for (size_t i = 0; i < here[rank].size(); ++i) {
      REQUIRE(there[rank][i].size() == here[rank][i].size());
      for (size_t k = 0; k < here[rank][i].size(); ++k)
        worst =
            worse(worst, std::abs(there[rank][i][k] - here[rank][i][k]) / std::max(1.0, std::abs(here[rank][i][k])));
    }
  }
  CHECK(worst <= bound);
}

// Every rank must end with the values of the CPU, both through host memory and over NCCL with 2 and 4 ranks.
void compare(const Body& body, double bound) {
  for (const int ranks : {2, 4}) {
    CAPTURE(ranks);
    const std::vector<Values> here = run("cpu", ranks, body);
    if (ranks == 2) compare(here, run("cuda", ranks, body), bound);
    if (device_count(DeviceType::CUDA) >= ranks) compare(here, run("nccl", ranks, body), bound);
  }
}

nn::Sequential normed_net(Device device) {
  manual_seed(5);
  nn::Sequential net(nn::Linear(6, 9), nn::BatchNorm1d(9), nn::ReLU(), nn::Linear(9, 2));
  net->to(device);
  return net;
}

Tensor batch(int rank, int step, Device device) {
  return numbers({7, 6}, kFloat32, static_cast<uint64_t>(10 * step + rank + 1)).to(device);
}

// Runs steps [first, end) on batches of this rank.
template <class DDP, class Optimizer>
void train(DDP& ddp, Optimizer& optimizer, int rank, Device device, int first, int end) {
  for (int step = first; step < end; ++step) {
    optimizer.zero_grad();
    const Tensor y = ddp(batch(rank, step, device));
    (y * y).mean().backward();
    optimizer.step();
  }
}

}  // namespace

TEST_CASE("buffers follow rank 0, and batch norm over all ranks is that of the whole batch") {
  for (const bool synchronised : {false, true}) {
    CAPTURE(synchronised);
    compare(
        [&](const dist::ProcessGroupPtr& group, Device device) {
          nn::Sequential net = normed_net(device);
          if (synchronised) dist::convert_sync_batchnorm(net, group);
          dist::DistributedDataParallel ddp(net, group);
          optim::SGD optimizer(net->parameters(), {.lr = 0.1});
          train(ddp, optimizer, group->rank(), device, 0, 3);
          Values values = values_of(net->parameters());
          for (const auto& buffer : values_of(net->buffers()))
            values.push_back(buffer);
          return values;
        },
        1e-5);
  }
}

TEST_CASE("in an uneven join ranks without data follow the statistics of a device's batch norm over all ranks") {
  compare(
      [](const dist::ProcessGroupPtr& group, Device device) {
        nn::Sequential net = normed_net(device);
        dist::convert_sync_batchnorm(net, group);
        dist::DistributedDataParallel ddp(net, group);
        optim::SGD optimizer(net->parameters(), {.lr = 0.1});
        dist::Join join(ddp);
        train(ddp, optimizer, group->rank(), device, 0, 4 - group->rank() % 3);
        join.finish();
        Values values = values_of(net->parameters());
        for (const auto& buffer : values_of(net->buffers()))
          values.push_back(buffer);
        return values;
      },
      1e-5);
}

TEST_CASE("ZeRO splits the states of a device's parameters and puts them together again") {
  compare(
      [](const dist::ProcessGroupPtr& group, Device device) {
        // No batch norm: the gradient of the bias before it would consist of rounding errors, which Adam scales up.
        manual_seed(5);
        nn::Sequential net(nn::Linear(6, 9), nn::Tanh(), nn::Linear(9, 2));
        net->to(device);
        dist::DistributedDataParallel ddp(net, group);
        dist::ZeroRedundancyOptimizer<optim::AdamW> optimizer(net->parameters(), {.lr = 0.01}, group);
        train(ddp, optimizer, group->rank(), device, 0, 3);
        Values values = values_of(net->parameters());
        optimizer.consolidate_state_dict(0);
        if (group->rank() == 0) {
          for (const auto& [name, tensor] : optimizer.state_dict().tensors)
            values.push_back(tensor.to_vector<double>());
        }
        return values;
      },
      1e-5);
}

TEST_CASE("PowerSGD goes on on a device with the state of the CPU") {
  compare(
      [](const dist::ProcessGroupPtr& group, Device device) {
        const auto run_from = [&](Device where, const dist::CommHookPtr& hook, int first) {
          manual_seed(5);
          nn::Sequential net(nn::Linear(6, 9), nn::Tanh(), nn::Linear(9, 5));
          net->to(where);
          dist::DistributedDataParallel ddp(net, group);
          ddp.register_comm_hook(hook);
          optim::SGD optimizer(net->parameters(), {.lr = 0.1});
          train(ddp, optimizer, group->rank(), where, first, first + 4);
          return values_of(net->parameters());
        };
        const dist::CommHookPtr before = dist::powersgd_hook({});
        run_from(Device(), before, 0);
        const dist::CommHookPtr after = dist::powersgd_hook({});
        after->load_state_dict(before->state_dict());
        return run_from(device, after, 4);
      },
      1e-4);
}

TEST_CASE("models are averaged where they are, also when they lie on several devices") {
  compare(
      [](const dist::ProcessGroupPtr& group, Device device) {
        const std::vector<Tensor> parameters{full({5}, group->rank() + 1, {kFloat32, device}),
                                             full({3}, group->rank() + 2, {kFloat64, device}),
                                             full({4}, group->rank() + 3, kFloat32)};
        dist::average_parameters(*group, parameters);
        return values_of(parameters);
      },
      0);
}

TEST_CASE("a value that differs on one rank's device is found and named") {
  std::mutex mutex;
  std::vector<std::string> found;
  run("cuda", 2, [&](const dist::ProcessGroupPtr& group, Device device) {
    nn::Sequential net = normed_net(device);
    CHECK(dist::verify_consistency(*group, net).consistent());
    if (group->rank() == 1) view::select(view::select(net->parameters()[0], 0, 2), 0, 3).fill_(0.75);
    const dist::ConsistencyReport report = dist::verify_consistency(*group, net);
    const std::lock_guard lock(mutex);
    for (const dist::Verdict& verdict : report.verdicts)
      found.push_back(verdict.message);
    return Values();
  });
  REQUIRE(found.size() == 2);
  for (const std::string& message : found) {
    CHECK(message.find("first at element 15 of [9, 6]") != std::string::npos);
    CHECK(message.find("rank 1 holds 0.75") != std::string::npos);
  }
}

}  // namespace brigade::test::mechanisms_test
