// Determines the ranks, what starts them, and the device of each.
#include <brigade/dist/fabric/fabric.h>

#include <brigade/core/device_runtime.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/dist/rendezvous/launch/environment.h>

#include <algorithm>
#include <optional>

namespace brigade::dist {
namespace {

bool names_one_gpu(const std::string& accelerator) { return accelerator.starts_with("cuda:"); }

// The form that choose_device() takes.
std::string device_text(const std::string& accelerator, SourceLocation where) {
  if (accelerator == "gpu") return "cuda";
  if (accelerator == "cpu" || accelerator == "cuda" || accelerator == "auto") return accelerator;
  if (names_one_gpu(accelerator)) return accelerator;
  throw ValueError(where, "unknown accelerator '{}'; known are auto, cpu, cuda, cuda:N, gpu", accelerator);
}

int gpus_of(const std::string& accelerator) {
  if (names_one_gpu(accelerator)) return 1;
  return accelerator == "cpu" ? 0 : device_count(DeviceType::CUDA);
}

}  // namespace

Fabric::Fabric(FabricOptions options, SourceLocation where) : options_(std::move(options)) {
  check(where);
  const std::optional<LaunchedRank> launched = find_launched_rank(launch_variables());
  const int asked = options_.devices * options_.num_nodes;
  plan_.is_launched = launched.has_value();
  if (launched) {
    plan_.ranks = launched->world_size;
    if (options_.devices > 0 && asked != plan_.ranks) {
      throw ValueError(where,
                       "Fabric: devices = {} on num_nodes = {} are {} ranks, and the launcher ({}) has started {}; "
                       "start as many, or leave devices out",
                       options_.devices, options_.num_nodes, asked, launched->launcher, plan_.ranks);
    }
    return;
  }
  if (options_.num_nodes > 1) {
    throw ValueError(where,
                     "Fabric: num_nodes = {}, and no launcher has started this program: start it on each node, with "
                     "brigade run, torchrun, mpirun or srun",
                     options_.num_nodes);
  }
  plan_.ranks = options_.devices > 0 ? options_.devices : std::max(1, gpus_of(options_.accelerator));
  if (plan_.ranks == 1) join(make_thread_groups(1).front());
}

Fabric::Fabric(FabricOptions options, ProcessGroupPtr group, SourceLocation where) : options_(std::move(options)) {
  check(where);
  if (!group) throw ValueError(where, "Fabric: the process group is empty; see init_process_group");
  if (group->rank() < 0) group->barrier({}, where);  // throws: this rank is not a member
  plan_.ranks = group->size();
  const std::optional<LaunchedRank> launched = find_launched_rank(launch_variables());
  plan_.is_launched = launched && launched->world_size == group->size() && launched->rank == group->rank();
  join(std::move(group));
}

void Fabric::check(SourceLocation where) {
  precision_ = &amp::find_precision(options_.precision);
  device_text(options_.accelerator, where);
  if (options_.devices == 0 || options_.devices < -1) {
    throw ValueError(where, "Fabric: devices = {}; expected the number of ranks of this host, or -1: all there are",
                     options_.devices);
  }
  if (options_.num_nodes < 1)
    throw ValueError(where, "Fabric: num_nodes = {}; expected at least 1", options_.num_nodes);
}

void Fabric::join(ProcessGroupPtr group) {
  group_ = std::move(group);
  device_ = choose_device(device_text(options_.accelerator, {}), local_rank());
  set_current_device(device_);
  amp::GradScalerOptions scaler = options_.scaler;
  scaler.enabled = precision_->scales;
  scaler.device = device_.type;
  steps_ = std::make_shared<OptimizerSteps>(scaler, precision_->name,
                                            options_.strategy.wraps(group_->size()) && group_->size() > 1);
}

void Fabric::launch(SourceLocation where) {
  if (group_) return;
  if (!plan_.is_launched) {
    throw ValueError(where,
                     "Fabric: {} ranks, and no launcher has started this program: give launch() the function that the "
                     "ranks are to run, fabric.launch([](dist::Fabric& fabric) {...}), or start the program with "
                     "brigade run -n {}",
                     plan_.ranks, plan_.ranks);
  }
  join(init_process_group(options_.group));
}

void Fabric::launch(const std::function<void(Fabric&)>& body, SourceLocation where) {
  if (group_ || plan_.is_launched) {
    launch(where);
    try {
      body(*this);
    } catch (const std::exception& error) {
      group_->note_failure(error.what());
      throw;
    }
    return;
  }
  const auto timeout = options_.group.timeout.value_or(std::chrono::seconds(30));
  run_threads(
      plan_.ranks,
      [&](ProcessGroupPtr group) {
        Fabric rank(options_, std::move(group), where);
        body(rank);
      },
      timeout);
}

const ProcessGroupPtr& Fabric::group() const {
  if (!group_) {
    throw ValueError(
        "To use Fabric with more than one device, you must call `.launch()`: fabric.launch([](dist::Fabric& fabric) "
        "{...}), and use the Fabric that the function gets");
  }
  return group_;
}

Device Fabric::device() const {
  group();
  return device_;
}

int Fabric::local_rank() const {
  const std::optional<LaunchedRank> launched = find_launched_rank(launch_variables());
  const bool is_known = launched && plan_.is_launched && launched->local_rank >= 0;
  return is_known ? launched->local_rank : global_rank() % std::max(1, world_size() / options_.num_nodes);
}

int Fabric::node_rank() const { return global_rank() / std::max(1, world_size() / options_.num_nodes); }

}  // namespace brigade::dist
