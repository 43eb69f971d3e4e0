// A complete mixed-precision step as one CUDA graph: autocast, a scaled loss, backward, all-reduce, the scaler's step
// and update. Replays give the results of eager steps with the usual scaler, including skipped steps and scale changes.
#include "on_device.h"
#include "replayed_steps.h"

#include <brigade/amp/autocast.h>
#include <brigade/amp/grad_scaler.h>
#include <brigade/autograd/functional.h>
#include <brigade/core/cuda/graph.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/optim/optim.h>
#include <dist/nets.h>
#include "../../core/error_of.h"

#include <cmath>

namespace brigade::test::captured_scaler_test {
namespace {

struct Step {
  std::vector<std::vector<double>> weights;
  double scale;
  int64_t tracker;
  bool operator==(const Step&) const = default;
};

enum class Way : uint8_t { Usual, OnDevice, Captured };
enum class Call : uint8_t { Step, FusedStep, ClipByValue, ClipByNorm };
enum class Mover : uint8_t { Sgd, AdamW };

// What becomes infinite on one rank: the gradients that DDP averages, or the gradient of a parameter that DDP ignores
// and only this rank sees.
enum class Spoils : uint8_t { Net, Own };

struct Training {
  BranchingNet net;
  std::unique_ptr<dist::DistributedDataParallel<BranchingNet>> ddp;
  std::unique_ptr<optim::Optimizer> optimizer;
  Call call;
  Spoils spoils;
  amp::GradScaler scaler;
  Tensor x, of_net, of_own;
  int rank;

  Training(const dist::ProcessGroupPtr& group, Device device, Way way, Call call_, Spoils spoils_, Mover mover)
      : call(call_),
        spoils(spoils_),
        scaler({.init_scale = 1024,
                .growth_interval = 2,
                .device = kCUDA,
                .fused_step = call_ == Call::FusedStep,
                .capturable = way != Way::Usual}),
        rank(group->rank()) {
    manual_seed(11);
    net = BranchingNet();
    net->to(device);
    x = zeros({6, 4}).to(device);
    of_net = ones({}).to(device);
    of_own = ones({}).to(device);
    dist::DDPOptions options;
    if (spoils == Spoils::Own) options.parameters_and_buffers_to_ignore = {"c.bias"};
    ddp = std::make_unique<dist::DistributedDataParallel<BranchingNet>>(net, group, options);
    if (mover == Mover::Sgd) {
      optimizer = std::make_unique<optim::SGD>(net->parameters(), optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
    } else {
      optimizer = std::make_unique<optim::AdamW>(
          net->parameters(), optim::AdamWOptions{.lr = 0.02, .amsgrad = true, .capturable = way != Way::Usual});
    }
  }
  void set_batch(int step) {
    kernels::copy(x, numbers({6, 4}, kFloat32, static_cast<uint64_t>(10 * step + rank + 1)));
    const bool is_bad = rank == 1 && (step == 3 || step == 4);
    const double factor = is_bad ? INFINITY : 1;
    kernels::fill(spoils == Spoils::Net ? of_net : of_own, factor);
  }
  void step() {
    optimizer->zero_grad();
    Tensor loss;
    {
      const amp::autocast guard(kCUDA, kFloat16);
      const Tensor y = (*ddp)(x);
      loss = (y * y).mean() * of_net;
    }
    loss = loss + (net->c->bias * of_own).sum() * 0.01;
    scaler.scale(loss).backward();
    if (call == Call::ClipByValue || call == Call::ClipByNorm) scaler.unscale_(*optimizer);
    if (call == Call::ClipByValue) optim::clip_grad_value_(optimizer->parameters(), 0.05);
    if (call == Call::ClipByNorm) {
      std::vector<Tensor> grads;
      for (const Tensor& parameter : optimizer->parameters()) {
        if (const Tensor grad = parameter.grad(); grad.defined()) grads.push_back(grad);
      }
      optim::clip_grads_with_norm_(optimizer->parameters(), 0.05, optim::get_total_norm(grads));
    }
    scaler.step(*optimizer);
    scaler.update();
  }
  Step state() const {
    Step now{{}, scaler.get_scale(), scaler.growth_tracker()};
    for (const Tensor& parameter : optimizer->parameters())
      now.weights.push_back(parameter.to_vector<double>());
    return now;
  }
};

std::vector<std::vector<Step>> run(int ranks, Way way, Call call, Spoils spoils, Mover mover) {
  return states_of(ranks, {.count = 9, .warm_up = 2}, way == Way::Captured,
                   [&](const dist::ProcessGroupPtr& group, Device device) {
                     return Training(group, device, way, call, spoils, mover);
                   });
}

}  // namespace

namespace {

void check_replays(int ranks, Call call, Spoils spoils, Mover mover) {
  CAPTURE(ranks);
  CAPTURE(static_cast<int>(call));
  CAPTURE(static_cast<int>(spoils));
  CAPTURE(static_cast<int>(mover));
  const auto usual = run(ranks, Way::Usual, call, spoils, mover);
  const auto on_device = run(ranks, Way::OnDevice, call, spoils, mover);
  const auto captured = run(ranks, Way::Captured, call, spoils, mover);
  check_same_states(on_device, usual);
  check_same_states(captured, usual);
  for (const auto& of_rank : captured) {
    for (size_t step = 0; step < of_rank.size(); ++step) {
      CHECK(of_rank[step].scale == captured[0][step].scale);
      if (spoils == Spoils::Net) CHECK(of_rank[step] == captured[0][step]);
    }
  }
  if (ranks > 1) {
    CHECK(captured[0][3].weights == captured[0][2].weights);
    CHECK(captured[0][3].scale == captured[0][2].scale / 2);
  }
  CHECK(captured[0].back().weights != captured[0][4].weights);
}

}  // namespace

TEST_CASE("replays of a captured step with autocast and a scaler leave what the usual scaler leaves") {
  for (const int ranks : {1, 2, 4}) {
    if (!has_gpus_for(ranks)) continue;
    for (const Call call : {Call::Step, Call::FusedStep, Call::ClipByValue, Call::ClipByNorm}) {
      for (const Spoils spoils : {Spoils::Net, Spoils::Own}) {
        // A norm that includes a rank's own gradient would differ between ranks.
        if (call == Call::ClipByNorm && spoils == Spoils::Own) continue;
        for (const Mover mover : {Mover::Sgd, Mover::AdamW})
          check_replays(ranks, call, spoils, mover);
      }
    }
  }
}

TEST_CASE("clipping whose norm goes to the host is not captured, and says what is") {
  const Tensor weight = ones({2}).to(kDevice).requires_grad_();
  weight.sum().backward();
  cuda::Graph graph;
  const std::string text = error_of([&] { graph.capture([&] { optim::clip_grad_norm_({weight}, 1); }); });
  CHECK(text.find("Call clip_grads_with_norm_(parameters, max_norm, get_total_norm(gradients))") != std::string::npos);
  CHECK(error_of([&] {
          optim::get_total_norm({weight.grad(), ones({2})});
        }).find("expected tensors on one device") != std::string::npos);
}

TEST_CASE("a scaler that begins in a capture is asked to begin before it") {
  const Tensor weight = ones({2}).to(kDevice).requires_grad_();
  amp::GradScaler scaler({.device = kCUDA, .capturable = true});
  cuda::Graph graph;
  const std::string text = error_of([&] { graph.capture([&] { scaler.scale(weight.sum()).backward(); }); });
  CHECK(text.find("Take at least one step outside of the capture") != std::string::npos);
}

}  // namespace brigade::test::captured_scaler_test
