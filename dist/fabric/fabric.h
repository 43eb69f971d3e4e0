// Fabric: one object for the device, the ranks, the strategy and the precision of a training loop, like Lightning's
// Fabric: the user writes the loop.
//
//   dist::Fabric fabric({.devices = 2, .strategy = "ddp", .precision = "bf16-mixed"});
//   fabric.launch([](dist::Fabric& fabric) {
//     dist::Fabric::seed_everything(1);
//     Net net;
//     optim::AdamW adamw(net->parameters(), {.lr = 1e-3});
//     auto [model, optimizer] = fabric.setup(net, adamw);
//     auto loader = fabric.setup_dataloaders(data::DataLoader(dataset, {.batch_size = 32, .shuffle = true}));
//     for (const data::Example& batch : loader) {
//       optimizer.zero_grad();
//       const Tensor loss = cross_entropy(model(batch.data), batch.target);
//       fabric.backward(loss);
//       optimizer.step();
//     }
//   });
//
// The ranks are those of the launcher that started the program (brigade run, torchrun, mpirun, srun); without one,
// `devices` threads of this process. docs/fabric.md lists the differences from Lightning.
#pragma once

#include <brigade/amp/autocast.h>
#include <brigade/autograd/backward.h>
#include <brigade/core/random.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/fabric/fabric_data_loader.h>
#include <brigade/dist/fabric/fabric_module.h>
#include <brigade/dist/fabric/fabric_optimizer.h>
#include <brigade/optim/checkpoint.h>
#include <brigade/optim/clip_grad.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace brigade::dist {

// --- Strategy: how the ranks of a training job synchronize, given by a name as in Lightning or by DDP options.
//   Fabric fabric({.strategy = "ddp_find_unused_parameters_true"});
//   Fabric fabric({.strategy = dist::DDPStrategy{.find_unused_parameters = true, .bucket_cap_mb = 50}});
using DDPStrategy = DDPOptions;

class Strategy {
 public:
  // "auto" (DDP with several ranks, no wrapper with one), "ddp", "ddp_find_unused_parameters_true",
  // "ddp_find_unused_parameters_false", "ddp_static_graph". Throws ValueError listing these for any other name.
  Strategy(const std::string& name);                                            // NOLINT: written as an option
  Strategy(const char* name) : Strategy(std::string(name)) {}                   // NOLINT
  Strategy(DDPOptions options) : name_("ddp"), options_(std::move(options)) {}  // NOLINT

  const std::string& name() const noexcept { return name_; }
  const DDPOptions& options() const noexcept { return options_; }
  // Whether modules are wrapped in DistributedDataParallel at this world size.
  bool wraps(int world_size) const noexcept { return name_ != "auto" || world_size > 1; }

 private:
  std::string name_;
  DDPOptions options_;
};

// "auto, ddp, ..."
std::string strategy_names();

// --- Destinations for training metrics.

class Logger {
 public:
  virtual ~Logger() = default;
  // `step`: -1 if none was given. Called on rank 0 only.
  virtual void log_metrics(const std::map<std::string, double>& metrics, int64_t step) = 0;
};

// Writes one line of JSON per call: {"loss": 0.5, "step": 3}. Non-finite numbers become null.
class JsonLinesLogger : public Logger {
 public:
  // Appends to the file, which the first line creates.
  explicit JsonLinesLogger(std::string path) : path_(std::move(path)) {}
  // Throws IoError when the file cannot be written.
  void log_metrics(const std::map<std::string, double>& metrics, int64_t step) override;

 private:
  std::string path_;
};

// --- Fabric

struct FabricOptions {
  std::string accelerator = "auto";  // "cpu", "cuda" or "gpu", "cuda:1" for all ranks, "auto": cuda if available
  int devices = -1;                  // ranks of this host; -1: those of the launcher, else all GPUs, or one CPU
  int num_nodes = 1;
  Strategy strategy = "auto";          // a name, or DDPStrategy{...}
  std::string precision = "32-true";   // amp::precision_names()
  amp::GradScalerOptions scaler = {};  // for "16-mixed"; `enabled` and `device` are overridden
  std::vector<std::shared_ptr<Logger>> loggers = {};
  InitOptions group = {};  // backend, time-outs and rendezvous, for launched ranks
};

struct ClipGradients {
  // Set exactly one of the two.
  std::optional<double> max_norm = std::nullopt;
  std::optional<double> clip_val = std::nullopt;
  double norm_type = 2;
  // Default: true without a loss scaler; false with one, which skips such a step and lowers its scale.
  std::optional<bool> error_if_nonfinite = std::nullopt;
};

class Fabric {
 public:
  // Starts no rank (see launch()), except that with a single rank this object is that rank. Throws ValueError for an
  // unknown accelerator, strategy or precision, listing the known ones, and for numbers of devices and nodes that are
  // invalid or do not match the launcher's.
  explicit Fabric(FabricOptions options = {}, SourceLocation where = SourceLocation::current());
  // A rank of an existing group; if it is the rank that a launcher started, the launcher provides its local rank.
  Fabric(FabricOptions options, ProcessGroupPtr group, SourceLocation where = SourceLocation::current());
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // --- Ranks.

  // Runs `body` on every rank with that rank's Fabric, and returns when those of this process have ended. Throws what
  // the body of the first failed rank threw (the others are notified), and what init_process_group throws.
  void launch(const std::function<void(Fabric&)>& body, SourceLocation where = SourceLocation::current());
  // Makes this object a rank: the launcher's, or the only one. Throws ValueError if the ranks would have to be
  // threads.
  void launch(SourceLocation where = SourceLocation::current());
  int global_rank() const { return group()->rank(); }
  int world_size() const { return group()->size(); }
  // The rank within this host, and the index of this host.
  int local_rank() const;
  int node_rank() const;
  bool is_global_zero() const { return global_rank() == 0; }
  // Calls `body` on rank 0 only; the other ranks do not wait for it.
  template <class F>
  void rank_zero_only(F&& body) const {
    if (is_global_zero()) body();
  }
  // Throws ValueError "To use Fabric with more than one device, you must call `.launch()`" before launch() (all calls
  // below do so, too).
  const ProcessGroupPtr& group() const;
  Device device() const;
  const amp::Precision& precision() const noexcept { return *precision_; }
  const Strategy& strategy() const noexcept { return options_.strategy; }

  // Seeds the generator of this rank, with the same number on all ranks as in Lightning, so that models start
  // identical. Seed with number + rank afterwards if ranks should differ (dropout, noise). Returns the seed.
  static uint64_t seed_everything(uint64_t seed) noexcept {
    manual_seed(seed);
    return seed;
  }

  // --- Setting up.

  // Converts the module to the precision's dtype, moves it to this rank's device, and wraps it for reduction over the
  // ranks if the strategy wraps. Parameters keep their identity, so optimizers may be created first. Collective.
  // Throws ValueError "A model should be passed only once to the `setup` method" and what DistributedDataParallel
  // throws.
  template <nn::Holder Module>
  FabricModule<Module> setup_module(Module module, SourceLocation where = SourceLocation::current()) {
    prepare_module(module.ptr(), where);
    std::shared_ptr<DistributedDataParallel<Module>> ddp;
    if (options_.strategy.wraps(world_size())) {
      ddp = std::make_shared<DistributedDataParallel<Module>>(module, group(), options_.strategy.options(), where);
      ddp->speak_for_fabric();
      wrappers_.push_back(ddp);
    }
    return {std::move(module), std::move(ddp), *precision_, device()};
  }
  // Returns a handle for one optimizer, a tuple of handles in their order for several. The optimizers must outlive
  // this object. Throws ValueError, with the caller's line, for one that was already set up.
  //   auto [first, second] = fabric.setup_optimizers(adam, sgd);
  template <std::derived_from<optim::Optimizer>... More>
  auto setup_optimizers(OptimizerArg first, More&... more) {
    if constexpr (sizeof...(More) == 0) {
      return set_up(first.optimizer, first.where);
    } else {
      // Braces guarantee left-to-right evaluation.
      return std::tuple{set_up(first.optimizer, first.where), set_up(more, first.where)...};
    }
  }
  // Sets up a module with any number of optimizers: auto [model, optimizer] = fabric.setup(net, adam). Warns about an
  // optimizer that holds no parameter of the module.
  template <nn::Holder Module>
  FabricModule<Module> setup(Module module, SourceLocation where = SourceLocation::current()) {
    return setup_module(std::move(module), where);
  }
  template <nn::Holder Module, std::derived_from<optim::Optimizer>... More>
  auto setup(Module module, OptimizerArg first, More&... more) {
    FabricModule<Module> model = setup_module(std::move(module), first.where);
    for (const optim::Optimizer* const optimizer : {&first.optimizer, static_cast<optim::Optimizer*>(&more)...})
      expect_optimizer_of(*model, *optimizer, first.where);
    return std::tuple{std::move(model), set_up(first.optimizer, first.where), set_up(more, first.where)...};
  }
  // With several ranks each gets its share of the examples (DistributedSampler, with the loader's shuffle, seed and
  // drop_last). A sampler that is already distributed stays; from any other user sampler each rank takes every
  // world_size-th index. Batches arrive on this rank's device.
  template <class E, class Batch>
  FabricDataLoader<E, Batch> setup_dataloaders(data::DataLoader<E, Batch> loader) {
    share_out(loader);
    return {std::make_shared<data::DataLoader<E, Batch>>(std::move(loader)), device()};
  }
  template <class... Loaders>
  requires(sizeof...(Loaders) > 1) auto setup_dataloaders(Loaders... loaders) {
    return std::tuple{setup_dataloaders(std::move(loaders))...};
  }

  // --- The loop.

  // Replaces loss.backward(): scales the loss if the precision needs it. Throws what backward throws.
  void backward(const Tensor& loss, const BackwardOptions& options = {},
                SourceLocation where = SourceLocation::current());
  void backward(const Tensor& loss, SourceLocation where) { backward(loss, {}, where); }
  // The name that LightningModules use for backward().
  void manual_backward(const Tensor& loss, const BackwardOptions& options = {},
                       SourceLocation where = SourceLocation::current()) {
    backward(loss, options, where);
  }
  // While the guard lives, and if `enabled`, backwards accumulate gradients on each rank; the next one outside
  // reduces the accumulated gradients. Guards the *backward*: where forward runs does not matter.
  template <nn::Holder Module>
  [[nodiscard]] std::optional<DistributedDataParallelBase::NoSync> no_backward_sync(
      const FabricModule<Module>& module, bool enabled = true, SourceLocation where = SourceLocation::current()) const {
    if (!enabled || !module.ddp()) return std::nullopt;
    return std::optional<DistributedDataParallelBase::NoSync>(module.ddp()->no_sync(where));
  }
  // Unscales and clips the optimizer's gradients. Returns the norm before clipping, 0 for clip_val. Throws ValueError
  // "Only one of `clip_val` or `max_norm` can be set ...", "You have to specify either `clip_val` or `max_norm` to do
  // gradient clipping!", and what clip_grad_norm_ throws.
  double clip_gradients(const FabricOptimizer& optimizer, const ClipGradients& options,
                        SourceLocation where = SourceLocation::current());
  // RAII: the autocast region of the precision, for computation outside of a module.
  [[nodiscard]] PrecisionRegion autocast(SourceLocation where = SourceLocation::current()) const {
    return {*precision_, device(), where};
  }

  // --- Several optimizers (manual optimization).

  // Until untoggle_optimizer(), of the parameters of all optimizers that were set up, only this optimizer's require
  // grad. A backward then has to reach those of them that a module of this Fabric holds, and no others, so that a
  // generator and a discriminator may share one wrapper. Must be the same on every rank. Throws ValueError while
  // another optimizer is toggled.
  void toggle_optimizer(const FabricOptimizer& optimizer, SourceLocation where = SourceLocation::current());
  // Restores requires_grad of all parameters, and expects backward to reach all of them again. Does nothing for an
  // optimizer that is not toggled.
  void untoggle_optimizer(const FabricOptimizer& optimizer, SourceLocation where = SourceLocation::current());
  // Sets a hook that replaces every optimizer's step (LightningModule.optimizer_step); empty: none.
  void set_optimizer_step(OptimizerStepHook hook) { steps()->set_hook(std::move(hook)); }
  // The loss scaler, enabled only under "16-mixed"; Fabric itself calls it.
  const amp::GradScaler& scaler() const { return steps()->scaler(); }

  // --- Between ranks. Collective: every rank calls them, in the same order.

  // Returns a new tensor: `op` over the ranks. Throws what ProcessGroup::all_reduce throws (Avg takes floating
  // dtypes).
  Tensor all_reduce(const Tensor& tensor, ReduceOp op = ReduceOp::Avg,
                    SourceLocation where = SourceLocation::current()) const;
  double all_reduce(double value, ReduceOp op = ReduceOp::Avg, SourceLocation where = SourceLocation::current()) const;
  // [..] on each rank -> [world_size, ..], with a single rank too.
  Tensor all_gather(const Tensor& tensor, SourceLocation where = SourceLocation::current()) const;
  // Returns rank `src`'s tensor in a new tensor; all ranks pass the same shape and dtype.
  Tensor broadcast(const Tensor& tensor, int src = 0, SourceLocation where = SourceLocation::current()) const;
  // The text may have any length; those of other ranks are ignored.
  std::string broadcast(const std::string& text, int src = 0, SourceLocation where = SourceLocation::current()) const;
  void barrier(SourceLocation where = SourceLocation::current()) const;

  // --- Files and output.

  // A checkpoint to which modules, optimizers, schedules, loaders and numbers are added. Under "16-mixed" it already
  // holds the loss scaler, as "scaler".
  optim::Checkpoint checkpoint();
  // Rank 0 writes the state, which is the same on all ranks; all wait for it. Collective. Throws, on every rank, what
  // Checkpoint::save throws on rank 0.
  void save(const std::string& path, const optim::Checkpoint& checkpoint,
            SourceLocation where = SourceLocation::current()) const;
  // Every rank reads the file. Collective. Throws what Checkpoint::load throws; if another rank could not read it,
  // IoError with that rank and its reason.
  void load(const std::string& path, optim::Checkpoint& checkpoint,
            SourceLocation where = SourceLocation::current()) const;
  // Prints a line to standard output, from rank 0.
  void print(std::string_view text) const;
  // Logs to all loggers, from rank 0. Average values that differ by rank first: all_reduce().
  void log(const std::string& name, double value, int64_t step = -1) const { log_dict({{name, value}}, step); }
  void log_dict(const std::map<std::string, double>& metrics, int64_t step = -1) const;

 private:
  // The required number of ranks, and whether a launcher starts them.
  struct Plan {
    int ranks = 1;
    bool is_launched = false;
  };
  void check(SourceLocation where);
  void join(ProcessGroupPtr group);
  const std::shared_ptr<OptimizerSteps>& steps() const;
  FabricOptimizer set_up(optim::Optimizer& optimizer, SourceLocation where) {
    steps()->add(optimizer, where);
    return {optimizer, steps()};
  }
  void prepare_module(const std::shared_ptr<nn::Module>& module, SourceLocation where);
  static void expect_optimizer_of(const nn::Module& module, const optim::Optimizer& optimizer, SourceLocation where);
  void share_out(data::DataLoaderBase& loader) const;
  void expect_toggled(const optim::Optimizer& optimizer) const;

  FabricOptions options_;
  const amp::Precision* precision_ = nullptr;
  Plan plan_;
  ProcessGroupPtr group_;
  Device device_;
  std::shared_ptr<OptimizerSteps> steps_;
  std::vector<std::weak_ptr<DistributedDataParallelBase>> wrappers_;
  std::vector<std::weak_ptr<nn::Module>> modules_;
  // While an optimizer is toggled: the previous requires_grad of each parameter.
  const optim::Optimizer* toggled_ = nullptr;
  std::vector<std::pair<Tensor, bool>> required_grad_;
};

}  // namespace brigade::dist
