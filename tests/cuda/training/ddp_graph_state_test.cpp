// Captured training steps over NCCL that exchange more than gradients: buffers at each forward, SyncBatchNorm
// statistics, gradients in half precision, or the two factors of PowerSGD.
#include "on_device.h"
#include "replayed_steps.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/cuda/graph.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/sync_batch_norm.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>
#include "../../core/error_of.h"

#include <memory>
#include <string>
#include <vector>

namespace brigade::test::ddp_graph_state_test {
namespace {

using Values = std::vector<std::vector<double>>;
using Ddp = dist::DistributedDataParallel<nn::Sequential>;

enum class With : uint8_t { BatchNorm, SyncBatchNorm, Fp16, Bf16, PowerSgd };

struct Training {
  nn::Sequential net{nullptr};
  std::unique_ptr<Ddp> ddp;
  std::unique_ptr<optim::SGD> optimizer;
  Tensor x;
  int rank;

  Training(const dist::ProcessGroupPtr& group, Device device, With with) : rank(group->rank()) {
    manual_seed(11);
    net = nn::Sequential(nn::Linear(4, 8), nn::BatchNorm1d(8), nn::ReLU(), nn::Linear(8, 3));
    if (with == With::SyncBatchNorm) dist::convert_sync_batchnorm(net, group);
    net->to(device);
    x = zeros({6, 4}).to(device);
    ddp = std::make_unique<Ddp>(net, group);
    if (with == With::Fp16) ddp->register_comm_hook(dist::fp16_compress_hook());
    if (with == With::Bf16) ddp->register_comm_hook(dist::bf16_compress_hook());
    if (with == With::PowerSgd)
      ddp->register_comm_hook(dist::powersgd_hook({.matrix_approximation_rank = 1, .min_compression_rate = 1}));
    optimizer = std::make_unique<optim::SGD>(net->parameters(), optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
  }
  void set_batch(int step) { kernels::copy(x, numbers({6, 4}, kFloat32, static_cast<uint64_t>(10 * step + rank + 1))); }
  void step() {
    optimizer->zero_grad();
    const Tensor y = (*ddp)(x);
    (y * y).mean().backward();
    optimizer->step();
  }
  Values state() const {
    Values values;
    for (const std::vector<Tensor>& tensors : {net->parameters(), net->buffers()}) {
      for (const Tensor& tensor : tensors)
        values.push_back(tensor.to_vector<double>());
    }
    return values;
  }
};

// A module with a buffer that backward reads.
struct MaskedImpl : nn::Module {
  nn::Linear layer{nullptr};
  Tensor mask;
  MaskedImpl() {
    layer = register_module("layer", nn::Linear(4, 3));
    mask = register_buffer("mask", ones({3}));
  }
  Tensor forward(const Tensor& x) { return layer(x) * mask; }
};
BRIGADE_MODULE(Masked);

std::vector<std::vector<Values>> states(int ranks, With with, bool captured) {
  return states_of(ranks, {.count = 8, .warm_up = 4}, captured,
                   [&](const dist::ProcessGroupPtr& group, Device device) { return Training(group, device, with); });
}

}  // namespace

TEST_CASE("replays of a step that exchanges buffers, statistics or compressed gradients leave what the steps leave") {
  for (const int ranks : {1, 2, 4}) {
    if (!has_gpus_for(ranks)) continue;
    for (const With with : {With::BatchNorm, With::SyncBatchNorm, With::Fp16, With::Bf16, With::PowerSgd}) {
      CAPTURE(ranks);
      CAPTURE(static_cast<int>(with));
      const auto plain = states(ranks, with, false);
      const auto captured = states(ranks, with, true);
      check_same_states(captured, plain);
      for (const auto& of_rank : plain) {
        for (size_t step = 0; step < of_rank.size(); ++step) {
          for (size_t i = 0; i < 6; ++i)  // the parameters; buffers have diverged since the last broadcast
            CHECK(of_rank[step][i] == plain[0][step][i]);
        }
      }
      CHECK(plain[0].front() != plain[0].back());
    }
  }
}

TEST_CASE("PowerSGD is not captured before it has compressed once") {
  for (const int warm_up : {1, 2}) {
    on_gpus(1, [&](const dist::ProcessGroupPtr& group, Device device) {
      Training training(group, device, With::PowerSgd);
      for (int i = 0; i < warm_up; ++i) {
        training.set_batch(i);
        training.step();
      }
      cuda::Graph graph;
      const std::string text = error_of([&] { graph.capture([&] { training.step(); }); });
      CHECK(text.find("compression begins with number 3") != std::string::npos);
      CHECK(text.find("Capture a later one") != std::string::npos);
    });
  }
}

TEST_CASE("buffers that nothing has written are the same for a graph of an earlier forward") {
  for (const int ranks : {1, 2}) {
    on_gpus(ranks, [](const dist::ProcessGroupPtr& group, Device device) {
      manual_seed(11);
      Masked net;
      net->to(device);
      dist::DistributedDataParallel ddp(net, group);
      const Tensor x = ones({6, 4}).to(device);
      const Tensor first = ddp(x);
      const Tensor second = ddp(x * 2.0);
      (first * second).mean().backward();
      // Where a rank changed the buffer, it is overwritten with the root's, which counts as a write.
      net->mask.fill_(2.0 + group->rank());
      const uint32_t before = net->mask.version();
      ddp(x);
      CHECK(net->mask.to_vector<float>() == std::vector<float>(3, 2.0F));
      CHECK((net->mask.version() > before) == (group->rank() > 0));
    });
  }
}

}  // namespace brigade::test::ddp_graph_state_test
