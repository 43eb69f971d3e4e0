// What each mechanism of DDP costs: two ranks (threads), one small transformer (and one network with batch norm) per
// mechanism, whole steps (zero_grad, forward, backward, AdamW) interleaved in one run.
//
// Printed: the median of the ratios of neighbouring steps to the way it is compared with, the middle half of them, and
// per step the collectives and the bytes that this rank gave to them. Usage: bench_mechanism_costs [blocks] [width]
// [steps]
#include "interleaved.h"
#include "transformer.h"

#include <brigade/autograd/tape.h>
#include <brigade/dist/distributed_data_parallel.h>
#include <brigade/dist/join.h>
#include <brigade/dist/launch/launcher.h>
#include <brigade/dist/model_averaging.h>
#include <brigade/dist/sync_batch_norm.h>
#include <brigade/dist/zero_redundancy_optimizer.h>
#include <brigade/kernels/factory.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <cstdlib>
#include <optional>

using namespace brigade;

namespace {

struct NormedImpl : nn::Module {
  nn::ModuleList<nn::Linear> layers;
  nn::ModuleList<nn::BatchNorm1d> norms;
  explicit NormedImpl(int64_t width) {
    register_module("layers", layers);
    register_module("norms", norms);
    for (int i = 0; i < 8; ++i) {
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

template <class Net>
struct Setup {
  Net net{nullptr};
  std::unique_ptr<dist::DistributedDataParallel<Net>> ddp;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<dist::Join> join;
  std::unique_ptr<dist::PeriodicModelAverager> averager;
};

Tensor loss_of(const Tensor& y) { return mean(square(y)); }

template <class Net>
void plain_step(Setup<Net>& setup, const Tensor& x) {
  if (setup.optimizer) setup.optimizer->zero_grad();
  loss_of((*setup.ddp)(x)).backward();
  if (setup.optimizer) setup.optimizer->step();
}

template <class Net>
std::shared_ptr<Setup<Net>> make(const dist::ProcessGroupPtr& group, Net net, const dist::DDPOptions& options) {
  auto setup = std::make_shared<Setup<Net>>();
  setup->net = std::move(net);
  setup->ddp = std::make_unique<dist::DistributedDataParallel<Net>>(setup->net, group, options);
  setup->optimizer = std::make_unique<optim::AdamW>(setup->net->parameters(), optim::AdamWOptions{.lr = 1e-4});
  return setup;
}

// The ways, and for each the one that it is compared with.
struct Comparison {
  std::vector<bench::Way> ways;
  std::vector<size_t> base;

  template <class Net>
  size_t add(const std::string& name, std::shared_ptr<Setup<Net>> setup, std::function<void(Setup<Net>&)> step,
             std::optional<size_t> compared_with = {}) {
    Setup<Net>* raw = setup.get();
    ways.push_back({.name = name, .owns = std::move(setup), .step = [raw, step] { step(*raw); }});
    base.push_back(compared_with.value_or(ways.size() - 1));
    return ways.size() - 1;
  }
};

Comparison compare_transformers(const dist::ProcessGroupPtr& group, int blocks, int64_t width) {
  using One = Setup<bench::Transformer>;
  Generator generator(static_cast<uint64_t>(group->rank()));
  const Tensor x = randn({4, 64, width}, kFloat32, &generator);
  const auto wrapped = [&](const dist::DDPOptions& options = {}) {
    manual_seed(1);
    return make(group, bench::Transformer(blocks, width), options);
  };
  const std::function<void(One&)> plain = [x](One& one) { plain_step(one, x); };
  Comparison all;
  const size_t strict = all.add("strict mode", wrapped(), plain);
  const auto option = [&](const std::string& name, const dist::DDPOptions& options) {
    all.add(name, wrapped(options), plain, strict);
  };
  const auto hook = [&](const std::string& name, dist::CommHookPtr with) {
    auto one = wrapped();
    one->ddp->register_comm_hook(std::move(with));
    all.add(name, one, plain, strict);
  };
  option("strict mode again (noise)", {});
  option("find_unused_parameters", {.find_unused_parameters = true});
  option("static_graph", {.static_graph = true});
  option("gradient_as_bucket_view off", {.gradient_as_bucket_view = false});
  option("one bucket per parameter", {.bucket_cap_mb = 1e-6, .first_bucket_mb = 1e-6});
  option("one bucket", {.bucket_cap_mb = 1000, .first_bucket_mb = 1000});
  option("delay_all_reduce of one parameter", {.delay_all_reduce_named_params = {"blocks.0.down.weight"},
                                               .param_to_hook_all_reduce = "blocks.0.qkv.weight"});
  option("check_steps off", {.check_steps = false});
  option("verify_every = 1", {.verify_every = 1});
  all.add("diagnosis and check_steps off", wrapped({.diagnosis = false, .check_steps = false}),
          std::function<void(One&)>([x](One& one) {
            const autograd::Tape::Pause pause;
            plain_step(one, x);
          }),
          strict);
  hook("allreduce_hook", dist::allreduce_hook());
  hook("fp16_compress_hook", dist::fp16_compress_hook());
  hook("bf16_compress_hook", dist::bf16_compress_hook());
  hook("powersgd_hook, rank 4", dist::powersgd_hook({.matrix_approximation_rank = 4}));
  hook("noop_hook", dist::noop_hook());
  {
    auto one = wrapped();
    one->optimizer.reset();
    one->ddp->apply_optimizer_in_backward([](std::vector<Tensor> parameters) {
      return std::make_unique<optim::AdamW>(std::move(parameters), optim::AdamWOptions{.lr = 1e-4});
    });
    all.add("apply_optimizer_in_backward", one, plain, strict);
  }
  {
    auto one = wrapped();
    one->optimizer = std::make_unique<dist::ZeroRedundancyOptimizer<optim::AdamW>>(
        one->net->parameters(), optim::AdamWOptions{.lr = 1e-4}, group);
    all.add("ZeroRedundancyOptimizer", one, plain, strict);
  }
  {
    auto one = wrapped();
    one->join = std::make_unique<dist::Join>(*one->ddp);
    all.add("Join", one, plain, strict);
  }
  {
    auto one = wrapped();
    one->net->checkpoint = true;
    all.add("checkpoint of each block", one, plain, strict);
  }
  {
    auto one = wrapped({.check_steps = false});
    one->ddp->register_comm_hook(dist::post_local_sgd_hook(1));
    one->averager = std::make_unique<dist::PeriodicModelAverager>(group, 4);
    all.add("local SGD, averaged every 4 steps", one, std::function<void(One&)>([x](One& local) {
              plain_step(local, x);
              local.averager->average_parameters(local.net);
            }),
            strict);
  }
  const auto two_backwards = [x](One& one, bool first_syncs) {
    one.optimizer->zero_grad();
    {
      std::optional<dist::DistributedDataParallelBase::NoSync> guard;
      if (!first_syncs) guard.emplace(one.ddp->no_sync());
      loss_of((*one.ddp)(x)).backward();
    }
    loss_of((*one.ddp)(x)).backward();
    one.optimizer->step();
  };
  const size_t both = all.add("two micro-batches, both reduced", wrapped(),
                              std::function<void(One&)>([two_backwards](One& one) { two_backwards(one, true); }));
  all.add("two micro-batches, no_sync", wrapped(),
          std::function<void(One&)>([two_backwards](One& one) { two_backwards(one, false); }), both);
  return all;
}

Comparison compare_batch_norms(const dist::ProcessGroupPtr& group, int64_t width) {
  using One = Setup<Normed>;
  Generator generator(static_cast<uint64_t>(group->rank()));
  const Tensor x = randn({128, width}, kFloat32, &generator);
  const std::function<void(One&)> plain = [x](One& one) { plain_step(one, x); };
  const auto network = [&] {
    manual_seed(1);
    return Normed(width);
  };
  Comparison all;
  const size_t without =
      all.add("batch norm, broadcast_buffers off", make(group, network(), {.broadcast_buffers = false}), plain);
  all.add("batch norm, broadcast_buffers", make(group, network(), {}), plain, without);
  Normed synchronised = network();
  dist::convert_sync_batchnorm(synchronised, group);
  all.add("SyncBatchNorm, broadcast_buffers off", make(group, synchronised, {.broadcast_buffers = false}), plain,
          without);
  return all;
}

void print(const Comparison& all) {
  for (size_t i = 0; i < all.ways.size(); ++i) {
    const bench::Way& way = all.ways[i];
    const double steps = static_cast<double>(way.ms.size());
    const bench::Ratio cost = bench::ratio(way, all.ways[all.base[i]]);
    const std::string ratio =
        all.base[i] == i ? "1" : fmt::format("{:.3f} [{:.3f} - {:.3f}]", cost.median, cost.low, cost.high);
    fmt::print("| {} | {:.2f} | {} | {:.2f} | {:.1f} |\n", way.name, bench::quantile(way.ms, 0.5), ratio,
               static_cast<double>(way.collectives) / steps, way.bytes / steps / 1024);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int blocks = argc > 1 ? std::atoi(argv[1]) : 3;
  const int64_t width = argc > 2 ? std::atoi(argv[2]) : 128;
  const int steps = argc > 3 ? std::atoi(argv[3]) : 60;
  dist::run_threads(2, [&](dist::ProcessGroupPtr group) {
    Comparison transformers = compare_transformers(group, blocks, width);
    Comparison norms = compare_batch_norms(group, width);
    bench::interleave(*group, transformers.ways, 6, steps);
    bench::interleave(*group, norms.ways, 6, steps);
    if (group->rank() != 0) return;
    fmt::print("{} blocks of width {}, {} steps of each way, interleaved; rank 0 of 2\n\n", blocks, width, steps);
    fmt::print(
        "| mechanism | step, ms | ratio [middle half] | collectives per step | KiB per step "
        "|\n|---|---|---|---|---|\n");
    print(transformers);
    print(norms);
  });
}
