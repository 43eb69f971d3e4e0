// brigade bench mechanisms: the cost of each mechanism of DDP: one small transformer per mechanism, whole steps
// (zero_grad, forward, backward, AdamW), each compared with a plain step in strict mode.
#include <brigade/autograd/tape.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/join.h>
#include <brigade/dist/ddp/zero_redundancy_optimizer.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/bench/steps.h>
#include <brigade/lab/bench/transformer.h>
#include <brigade/optim/optim.h>

#include <optional>

namespace brigade::lab::bench {
namespace {

struct Setup {
  Transformer net{nullptr};
  std::unique_ptr<dist::DistributedDataParallel<Transformer>> ddp;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<dist::Join> join;
  std::optional<dist::PeriodicModelAverager> averager;
};
using Step = std::function<void(Setup&)>;

Tensor loss_of(const Tensor& y) { return mean(square(y)); }

void plain_step(Setup& setup, const Tensor& x) {
  if (setup.optimizer) setup.optimizer->zero_grad();
  loss_of((*setup.ddp)(x)).backward();
  if (setup.optimizer) setup.optimizer->step();
  if (setup.averager) setup.averager->average_parameters(setup.net);
}

// Collects the ways of one rank.
struct Ways {
  dist::ProcessGroupPtr group;
  StepsOptions options;
  std::vector<Way> all = {};

  std::shared_ptr<Setup> wrapped(const dist::DDPOptions& ddp_options = {}) const {
    manual_seed(1);
    auto setup = std::make_shared<Setup>();
    setup->net = Transformer(options.layers, options.width);
    setup->ddp = std::make_unique<dist::DistributedDataParallel<Transformer>>(setup->net, group, ddp_options);
    setup->optimizer = std::make_unique<optim::AdamW>(setup->net->parameters(), optim::AdamWOptions{.lr = 1e-4});
    return setup;
  }

  size_t add(const std::string& name, std::shared_ptr<Setup> setup, const Step& step,
             std::vector<size_t> compared_with) {
    Setup* raw = setup.get();
    all.push_back({.name = name,
                   .owns = std::move(setup),
                   .step = [raw, step] { step(*raw); },
                   .compared_with = std::move(compared_with)});
    return all.size() - 1;
  }
};

void add_options(Ways& ways, size_t strict, const Step& plain) {
  const auto option = [&](const std::string& name, const dist::DDPOptions& options) {
    ways.add(name, ways.wrapped(options), plain, {strict});
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
}

void add_hooks(Ways& ways, size_t strict, const Step& plain) {
  const auto hook = [&](const std::string& name, dist::CommHookPtr with) {
    auto one = ways.wrapped();
    one->ddp->register_comm_hook(std::move(with));
    ways.add(name, one, plain, {strict});
    return one;
  };
  hook("allreduce_hook", dist::allreduce_hook());
  hook("fp16_compress_hook", dist::fp16_compress_hook());
  hook("bf16_compress_hook", dist::bf16_compress_hook());
  hook("reduce_in_hook(kFloat16, 8)", dist::reduce_in_hook(kFloat16, 8));
  hook("powersgd_hook, rank 4", dist::powersgd_hook({.matrix_approximation_rank = 4}));
  hook("noop_hook", dist::noop_hook())->averager = averaged_once(ways.group);
}

void add_optimizers(Ways& ways, size_t strict, const Step& plain) {
  auto in_backward = ways.wrapped();
  in_backward->optimizer.reset();
  in_backward->ddp->apply_optimizer_in_backward([](std::vector<Tensor> parameters) {
    return std::make_unique<optim::AdamW>(std::move(parameters), optim::AdamWOptions{.lr = 1e-4});
  });
  ways.add("apply_optimizer_in_backward", in_backward, plain, {strict});

  auto zero = ways.wrapped();
  zero->optimizer = std::make_unique<dist::ZeroRedundancyOptimizer<optim::AdamW>>(
      zero->net->parameters(), optim::AdamWOptions{.lr = 1e-4}, ways.group);
  ways.add("ZeroRedundancyOptimizer", zero, plain, {strict});
}

void add_others(Ways& ways, size_t strict, const Step& plain, const Tensor& x) {
  ways.add("diagnosis and check_steps off", ways.wrapped({.diagnosis = false, .check_steps = false}),
           [x](Setup& one) {
             const autograd::Tape::Pause pause;
             plain_step(one, x);
           },
           {strict});

  auto joined = ways.wrapped();
  joined->join = std::make_unique<dist::Join>(*joined->ddp);
  ways.add("Join", joined, plain, {strict});

  auto again = ways.wrapped();
  again->net->checkpoint = true;
  ways.add("checkpoint of each block", again, plain, {strict});

  auto local = ways.wrapped({.check_steps = false});
  local->ddp->register_comm_hook(dist::post_local_sgd_hook(0));
  local->averager.emplace(ways.group, 4);
  ways.add("local SGD, averaged every 4 steps", local, plain, {strict});
}

void add_micro_batches(Ways& ways, const Tensor& x) {
  const auto two_backwards = [x](Setup& one, bool first_syncs) {
    one.optimizer->zero_grad();
    {
      std::optional<dist::DistributedDataParallelBase::NoSync> guard;
      if (!first_syncs) guard.emplace(one.ddp->no_sync());
      loss_of((*one.ddp)(x)).backward();
    }
    loss_of((*one.ddp)(x)).backward();
    one.optimizer->step();
  };
  const size_t both = ways.add("two micro-batches, both reduced", ways.wrapped(),
                               [two_backwards](Setup& one) { two_backwards(one, true); }, {});
  ways.add("two micro-batches, no_sync", ways.wrapped(), [two_backwards](Setup& one) { two_backwards(one, false); },
           {both});
}

std::vector<Way> ways_of(const dist::ProcessGroupPtr& group, const StepsOptions& options) {
  RandomGenerator generator(static_cast<uint64_t>(group->rank()));
  const Tensor x = randn({4, 64, options.width}, kFloat32, &generator);
  const Step plain = [x](Setup& one) { plain_step(one, x); };
  Ways ways{group, options};
  const size_t strict = ways.add("strict mode", ways.wrapped(), plain, {});
  add_options(ways, strict, plain);
  add_hooks(ways, strict, plain);
  add_optimizers(ways, strict, plain);
  add_others(ways, strict, plain, x);
  add_micro_batches(ways, x);
  return std::move(ways.all);
}

const AddStepsBenchmark add({.name = "mechanisms",
                             .about = "What each mechanism of DDP costs: options, hooks, optimizers, join, no_sync",
                             .footer = "Blocks of a transformer with four heads: the width is a multiple of 4.",
                             .usual = {.layers = 3, .width = 128},
                             .steps = 60,
                             .width_multiple_of = 4,
                             .ways = &ways_of});

}  // namespace
}  // namespace brigade::lab::bench
