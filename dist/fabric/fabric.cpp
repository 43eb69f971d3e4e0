// Implements setup, backward, clipping, toggling of optimizers, strategies and loggers.
#include <brigade/core/place.h>
#include <brigade/core/warning.h>
#include <brigade/dist/ddp/sampler.h>
#include <brigade/dist/fabric/fabric.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <unordered_set>

namespace brigade::dist {
namespace {

std::unordered_set<const TensorImpl*> held_by(const optim::Optimizer& optimizer) {
  std::unordered_set<const TensorImpl*> held;
  for (const Tensor& parameter : optimizer.parameters())
    held.insert(parameter.impl());
  return held;
}

}  // namespace

const std::shared_ptr<OptimizerSteps>& Fabric::steps() const {
  group();
  return steps_;
}

void Fabric::prepare_module(const std::shared_ptr<nn::Module>& module, SourceLocation where) {
  group();
  if (!module) throw ValueError(where, "Fabric: the module to set up is empty");
  std::erase_if(modules_, [](const auto& each) { return each.expired(); });
  if (std::any_of(modules_.begin(), modules_.end(), [&](const auto& each) { return each.lock() == module; })) {
    throw ValueError(where, "A model should be passed only once to the `setup` method; {} was set up before",
                     module->name());
  }
  module->to(precision_->parameters, where);
  module->to(device_, where);
  modules_.push_back(module);
}

void Fabric::expect_optimizer_of(const nn::Module& module, const optim::Optimizer& optimizer, SourceLocation where) {
  const std::unordered_set<const TensorImpl*> held = held_by(optimizer);
  const std::vector<Tensor> own = module.parameters();
  if (std::ranges::any_of(own, [&](const Tensor& parameter) { return held.contains(parameter.impl()); })) return;
  warn({fmt::format("Not trained: {}, set up with {} at {}.\nwhy: the optimizer holds none of its parameters.",
                    module.name(), optimizer.name(), to_string(Place(where))),
        "make the optimizer of the parameters of that module, after the last layer was put into it"});
}

void Fabric::share_out(data::DataLoaderBase& loader) const {
  const int ranks = world_size();
  if (loader.sampler().world_size() > 1) return;
  const data::DataLoaderOptions& options = loader.options();
  if (options.sampler) {
    if (ranks > 1)
      loader.set_sampler(std::make_shared<DistributedSamplerWrapper>(options.sampler, global_rank(), ranks));
    return;
  }
  // Also with one rank: the order stays the loader's, and a saved position can be resumed on any number of ranks.
  const DistributedSamplerOptions shared{
      .shuffle = options.shuffle, .seed = options.seed, .drop_last = options.drop_last};
  loader.set_sampler(std::make_shared<DistributedSampler>(loader.dataset_size(), global_rank(), ranks, shared));
}

void Fabric::backward(const Tensor& loss, const BackwardOptions& options, SourceLocation where) {
  amp::GradScaler& scaler = steps()->scaler();
  if (scaler.is_enabled()) {
    scaler.scale(loss, where).backward(options, where);
  } else {
    loss.backward(options, where);
  }
}

double Fabric::clip_gradients(const FabricOptimizer& optimizer, const ClipGradients& options, SourceLocation where) {
  if (options.max_norm && options.clip_val) {
    throw ValueError(
        "Only one of `clip_val` or `max_norm` can be set as this specifies the underlying clipping algorithm!", where);
  }
  if (!options.max_norm && !options.clip_val) {
    throw ValueError("You have to specify either `clip_val` or `max_norm` to do gradient clipping!", where);
  }
  steps()->unscale(*optimizer, where);
  if (options.clip_val) {
    optim::clip_grad_value_(optimizer->parameters(), *options.clip_val, where);
    return 0;
  }
  const bool is_strict = options.error_if_nonfinite.value_or(!steps()->scaler().is_enabled());
  return optim::clip_grad_norm_(optimizer->parameters(), *options.max_norm,
                                {.norm_type = options.norm_type, .error_if_nonfinite = is_strict}, where);
}

void Fabric::toggle_optimizer(const FabricOptimizer& optimizer, SourceLocation where) {
  if (toggled_ == &*optimizer) return;
  if (toggled_) {
    throw ValueError(where, "Fabric: {} is toggled already; call untoggle_optimizer() first", toggled_->name());
  }
  std::unordered_set<const TensorImpl*> seen;
  for (const optim::Optimizer* const each : steps()->all()) {
    for (const Tensor& parameter : each->parameters()) {
      if (seen.insert(parameter.impl()).second) required_grad_.emplace_back(parameter, parameter.requires_grad());
    }
  }
  const std::unordered_set<const TensorImpl*> own = held_by(*optimizer);
  for (const auto& [parameter, required] : required_grad_)
    parameter.requires_grad_(required && own.contains(parameter.impl()), where);
  toggled_ = &*optimizer;
  expect_toggled(*optimizer);
}

// Expects the optimizer's parameters in each module; requires_grad of the others is off, so that no backward can
// reach them.
void Fabric::expect_toggled(const optim::Optimizer& optimizer) const {
  for (const auto& each : wrappers_) {
    const std::shared_ptr<DistributedDataParallelBase> wrapper = each.lock();
    if (!wrapper) continue;
    std::vector<Tensor> held;
    for (const Tensor& parameter : optimizer.parameters()) {
      if (wrapper->reducer().find(parameter) >= 0) held.push_back(parameter);
    }
    wrapper->reducer().expect(held);
  }
}

void Fabric::untoggle_optimizer(const FabricOptimizer& optimizer, SourceLocation where) {
  if (toggled_ != &*optimizer) return;
  for (const auto& [parameter, required] : required_grad_)
    parameter.requires_grad_(required, where);
  required_grad_.clear();
  toggled_ = nullptr;
  for (const auto& each : wrappers_) {
    if (const std::shared_ptr<DistributedDataParallelBase> wrapper = each.lock()) wrapper->reducer().expect_all();
  }
}

// --- The known strategies and the DDP options that each implies.

namespace {

struct NamedStrategy {
  const char* name;
  bool find_unused_parameters = false;
  bool static_graph = false;
};

constexpr std::array<NamedStrategy, 5> kStrategies{
    {{"ddp"},
     {.name = "ddp_find_unused_parameters_true", .find_unused_parameters = true},
     {"ddp_find_unused_parameters_false"},
     {.name = "ddp_static_graph", .static_graph = true},
     {"auto"}}};

}  // namespace

Strategy::Strategy(const std::string& name) : name_(name) {
  for (const NamedStrategy& each : kStrategies) {
    if (name != each.name) continue;
    options_.find_unused_parameters = each.find_unused_parameters;
    options_.static_graph = each.static_graph;
    return;
  }
  throw ValueError("unknown strategy '{}'; known are {}", name, strategy_names());
}

std::string strategy_names() {
  std::string names;
  for (const NamedStrategy& each : kStrategies)
    names += std::string(names.empty() ? "" : ", ") + each.name;
  return names;
}

// --- Writes each line in one piece, so that readers rarely see a partial line.

void JsonLinesLogger::log_metrics(const std::map<std::string, double>& metrics, int64_t step) {
  nlohmann::json line(metrics);
  if (step >= 0) line["step"] = step;
  std::ofstream file(path_, std::ios::app);
  file << line.dump() + "\n" << std::flush;
  if (!file) throw IoError("cannot write {}: {}", path_, std::strerror(errno));
}

}  // namespace brigade::dist
