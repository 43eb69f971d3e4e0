// Finds the device and the data of a recipe, and asks all ranks.
#include <brigade/lab/recipes/training.h>

#include <brigade/autograd/functional.h>
#include <brigade/core/device_runtime.h>
#include <brigade/core/factory.h>
#include <brigade/lab/rank_job.h>
#include <brigade/lab/recipes/replicas.h>

namespace brigade::lab {

Device ready_device(const TrainOptions& options, const dist::ProcessGroup& group) {
  const Device device = choose_device(options.device, local_rank(group));
  set_current_device(device);
  return device;
}

Digits digits_on(Device device, const amp::Precision& precision) {
  const Digits digits = load_digits(digits_path(), precision.parameters);
  const auto moved = [&](const Examples& examples) {
    return Examples{examples.images.to(device), examples.labels.to(device)};
  };
  return {moved(digits.train), moved(digits.test)};
}

void add_scaler(optim::Checkpoint& checkpoint, amp::GradScaler& scaler) {
  if (!scaler.is_enabled()) return;
  checkpoint.part(
      "scaler", [&scaler] { return scaler.state_dict(); },
      [&scaler](const optim::OptimizerState& state) { scaler.load_state_dict(state); });
}

TrainResult begun(Device device, const Progress& progress, int64_t steps_per_epoch) {
  TrainResult result;
  result.device = to_string(device);
  result.from_epoch = static_cast<int>(progress.steps / steps_per_epoch);
  return result;
}

TrainResult ended(TrainResult result, dist::ProcessGroup& group, const std::vector<Tensor>& parameters, StepLog& log) {
  result.gradients_equal = same_on_all_ranks(group, gradients_of(parameters));
  result.parameters_equal = same_on_all_ranks(group, parameters);
  log.tell(result);
  return result;
}

double accuracy_of(const Tensor& logits, const Tensor& labels) {
  const NoGradGuard no_grad;
  return eq(argmax(logits, 1), labels).to(kFloat64).mean().item();
}

double mean_over_ranks(dist::ProcessGroup& group, double value, const char* about) {
  const Tensor mean = tensor<double>({value});
  group.all_reduce(mean, {.op = dist::ReduceOp::Avg, .description = about})->wait();
  return mean.item();
}

void note_warnings(const dist::DistributedDataParallelBase& wrapper, TrainResult& result) {
  for (const dist::Verdict& verdict : wrapper.advisories()) {
    if (verdict.severity == dist::Severity::Warning) result.metrics["warning " + verdict.kind] = 1;
  }
}

}  // namespace brigade::lab
