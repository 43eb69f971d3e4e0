// brigade bench batch-norm: the cost of keeping batch norm's statistics equal on all ranks: broadcasting buffers
// from rank 0 before each forward (broadcast_buffers) and statistics over the whole batch (SyncBatchNorm), compared
// with neither.
#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/sync_batch_norm.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/bench/steps.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

namespace brigade::lab::bench {
namespace {

struct NormedImpl : nn::Module {
  nn::ModuleList<nn::Linear> layers;
  nn::ModuleList<nn::BatchNorm1d> norms;
  NormedImpl(int count, int64_t width) {
    register_module("layers", layers);
    register_module("norms", norms);
    for (int i = 0; i < count; ++i) {
      layers->push_back(nn::Linear(width, width));
      norms->push_back(nn::BatchNorm1d(width));
    }
  }
  Tensor forward(Tensor x) {
    for (size_t i = 0; i < layers->size(); ++i)
      x = brigade::relu((*norms)[i]((*layers)[i](x)));
    return x;
  }
};
BRIGADE_MODULE(Normed);

std::vector<Way> ways_of(const dist::ProcessGroupPtr& group, const StepsOptions& options) {
  RandomGenerator generator(static_cast<uint64_t>(group->rank()));
  const Tensor x = randn({128, options.width}, kFloat32, &generator);
  struct Setup {
    dist::DistributedDataParallel<Normed> ddp;
    optim::AdamW optimizer;
  };
  std::vector<Way> ways;
  const auto add = [&](const std::string& name, bool broadcast_buffers, bool synchronised) {
    manual_seed(1);
    Normed net(options.layers, options.width);
    if (synchronised) dist::convert_sync_batchnorm(net, group);
    auto setup = std::shared_ptr<Setup>(
        new Setup{{net, group, {.broadcast_buffers = broadcast_buffers}}, {net->parameters(), {.lr = 1e-4}}});
    Setup* raw = setup.get();
    ways.push_back({.name = name, .owns = std::move(setup), .step = [raw, x] {
                      raw->optimizer.zero_grad();
                      mean(square(raw->ddp(x))).backward();
                      raw->optimizer.step();
                    }});
    if (ways.size() > 1) ways.back().compared_with = {0};
  };
  add("broadcast_buffers off", false, false);
  add("broadcast_buffers", true, false);
  add("SyncBatchNorm, broadcast_buffers off", false, true);
  return ways;
}

const AddStepsBenchmark add({.name = "batch-norm",
                             .about = "What batch norm costs: broadcast_buffers and SyncBatchNorm",
                             .footer = "Each layer is a linear layer, batch norm and relu.",
                             .usual = {.layers = 8, .width = 128},
                             .steps = 60,
                             .ways = &ways_of});

}  // namespace
}  // namespace brigade::lab::bench
