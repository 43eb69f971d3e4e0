#include <brigade/dist/distributed_data_parallel.h>

#include <brigade/autograd/grad_mode.h>
#include <brigade/autograd/tape.h>
#include <brigade/dist/replica_check.h>

namespace brigade::dist {

DistributedDataParallelBase::DistributedDataParallelBase(std::shared_ptr<nn::Module> module, ProcessGroupPtr group,
                                                         const DDPOptions& options, SourceLocation where)
    : module_(std::move(module)), group_(std::move(group)), options_(options), thread_(std::this_thread::get_id()) {
  if (!module_) throw ValueError("DistributedDataParallel: the module is empty (" + to_string(where) + ")", where);
  if (!group_)
    throw ValueError(
        "DistributedDataParallel: the process group is empty; see init_process_group (" + to_string(where) + ")",
        where);
  if (!(options.bucket_cap_mb > 0) || !(options.first_bucket_mb > 0)) {
    throw ValueError(
        "DistributedDataParallel: bucket_cap_mb and first_bucket_mb must be above 0 (" + to_string(where) + ")", where);
  }
  std::vector<ReplicaTensor> replica;
  std::vector<Tensor> values;
  std::vector<NamedParameter> trainable;
  for (const auto& [name, parameter] : module_->named_parameters()) {
    replica.push_back({"parameter", name, parameter});
    values.push_back(parameter);
    if (parameter.requires_grad()) trainable.push_back({name, parameter});
  }
  for (const auto& [name, buffer] : module_->named_buffers()) {
    replica.push_back({"buffer", name, buffer});
    values.push_back(buffer);
    buffers_.push_back(buffer);
  }
  const std::string model = module_->name();
  check_same_replicas(*group_, replica, model, where);
  if (trainable.empty()) {
    throw ValueError(
        "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient. (" +
            to_string(where) + ")",
        where);
  }
  broadcast_coalesced(*group_, values, 0, "parameters and buffers of DDP(" + model + ")", where);

  ReducerOptions reducer_options;
  reducer_options.find_unused_parameters = options.find_unused_parameters;
  reducer_options.limits.first_bytes = static_cast<int64_t>(options.first_bucket_mb * 1024 * 1024);
  reducer_options.limits.cap_bytes = static_cast<int64_t>(options.bucket_cap_mb * 1024 * 1024);
  reducer_options.report_at = options.report_at;
  reducer_options.module_name = model;
  reducer_ = std::make_shared<Reducer>(std::move(trainable), group_, std::move(reducer_options));
  autograd::add_listener(reducer_);
  if (options_.diagnosis) autograd::Tape::enable();
}

DistributedDataParallelBase::~DistributedDataParallelBase() {
  // The tape belongs to the thread that wrapped the module.
  if (options_.diagnosis && reducer_ && thread_ == std::this_thread::get_id()) autograd::Tape::disable();
}

void DistributedDataParallelBase::pre_forward(SourceLocation where) {
  if (!autograd::GradMode::is_enabled()) return;
  reducer_->prepare_for_forward();
  // Only a forward that trains: an evaluation on one rank must not wait for the others.
  if (options_.broadcast_buffers && !buffers_.empty() && module_->is_training() && reducer_->syncs()) {
    broadcast_coalesced(*group_, buffers_, 0, "buffers of DDP(" + module_->name() + ")", where);
  }
}

}  // namespace brigade::dist
