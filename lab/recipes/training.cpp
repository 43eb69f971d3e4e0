// Finds the device and the data of a recipe, and asks all ranks.
#include <brigade/lab/recipes/training.h>

#include <brigade/autograd/functional.h>
#include <brigade/core/device_runtime.h>
#include <brigade/core/factory.h>
#include <brigade/data/dataset.h>
#include <brigade/dist/fabric/fabric.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/rank_job.h>

#include <algorithm>
#include <cstring>

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

dist::FabricOptions fabric_options(const TrainOptions& options, const std::function<void(dist::DDPOptions&)>& change) {
  dist::DDPOptions ddp = strategy_options(options.strategy, options.bucket_mb);
  if (change) change(ddp);
  return {.accelerator = options.device, .strategy = ddp, .precision = options.precision};
}

int64_t batch_of_a_rank(const TrainOptions& options, const dist::ProcessGroup& group, int64_t examples) {
  if (options.global_batch < group.size() || options.global_batch % group.size() != 0)
    throw ValueError("the global batch of {} cannot be shared evenly by {} ranks", options.global_batch, group.size());
  if (options.epochs < 1) throw ValueError("expected at least 1 epoch, got {}", options.epochs);
  if (options.global_batch > examples)
    throw ValueError("the global batch of {} is larger than the {} examples to train on", options.global_batch,
                     examples);
  return options.global_batch / group.size();
}

int64_t steps_of(const TrainOptions& options, int64_t per_epoch) {
  const int64_t all = per_epoch * options.epochs;
  return options.steps > 0 ? std::min(all, options.steps) : all;
}

Tensor noise_of_step(const dist::ProcessGroup& group, const TrainOptions& options, int64_t step, const Shape& shape,
                     TensorOptions like) {
  RandomGenerator random(options.seed * 1000003 + static_cast<uint64_t>(step));
  Shape all{options.global_batch};
  for (const int64_t size : shape)
    all.push_back(size);
  return randn(all, like.dtype, &random)
      .slice(0, group.rank(), options.global_batch, group.size())
      .contiguous()
      .to(like.device);
}

void keep_trace(dist::DistributedDataParallelBase& ddp, const TrainOptions& options) {
  if (options.trace_steps > 0) ddp.timeline().keep(static_cast<size_t>(options.trace_steps));
}

dist::FabricDataLoader<data::Example, data::Example> load_in_batches(dist::Fabric& fabric, const Examples& examples,
                                                                     const TrainOptions& options, bool shuffle) {
  const auto dataset = std::make_shared<data::TensorDataset>(examples.images, examples.labels);
  const int64_t batch = batch_of_a_rank(options, *fabric.group(), dataset->size());
  return fabric.setup_dataloaders(
      data::DataLoader(dataset, {.batch_size = batch, .shuffle = shuffle, .seed = options.seed, .drop_last = true}));
}

void add_loader(optim::Checkpoint& checkpoint, data::DataLoaderBase& loader) {
  checkpoint.part(
      "data", [&loader] { return loader.state_dict(); },
      [&loader](const optim::OptimizerState& state) { loader.load_state_dict(state); });
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

void note_scaler(const dist::Fabric& fabric, std::initializer_list<const optim::Optimizer*> optimizers,
                 TrainResult& result) {
  if (!fabric.precision().scales) return;
  int64_t skipped = 0;
  for (const optim::Optimizer* optimizer : optimizers)
    skipped += optimizer->steps_skipped();
  result.metrics["loss scale"] = fabric.scaler().get_scale();
  result.metrics["skipped steps"] = static_cast<double>(skipped);
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
    if (verdict.severity == dist::Severity::Warning) result.warnings.insert(verdict.kind);
  }
}

// --- A strategy's options, with buckets of another size.

dist::DDPOptions strategy_options(const std::string& name, double bucket_mb) {
  dist::DDPOptions options = dist::Strategy(name).options();
  if (bucket_mb > 0) {
    options.bucket_cap_mb = bucket_mb;
    options.first_bucket_mb = std::min(options.first_bucket_mb, bucket_mb);
  }
  return options;
}

// --- Compares bytes with those of rank 0.

namespace {

bool smallest_on_all_ranks(dist::ProcessGroup& group, int64_t own) {
  const Tensor verdict = brigade::tensor<int64_t>({own});
  group.all_reduce(verdict, {.op = dist::ReduceOp::Min, .description = "are the replicas equal"})->wait();
  return verdict.item<int64_t>() == 1;
}

}  // namespace

bool same_on_all_ranks(dist::ProcessGroup& group, const std::vector<Tensor>& tensors) {
  // Who holds a tensor at all comes first: only what all hold can be broadcast.
  std::vector<int64_t> defined;
  for (const Tensor& tensor : tensors)
    defined.push_back(tensor.defined() ? 1 : 0);
  const auto count = static_cast<int64_t>(defined.size());
  const Tensor least = from_values(std::span<const int64_t>(defined), {count});
  const Tensor most = least.clone();
  group.all_reduce(least, {.op = dist::ReduceOp::Min, .description = "who holds what"})->wait();
  group.all_reduce(most, {.op = dist::ReduceOp::Max, .description = "who holds what"})->wait();
  if (least.to_vector<int64_t>() != most.to_vector<int64_t>()) return false;

  int64_t equal = 1;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    const Tensor own = tensor.detach().contiguous().cpu();
    const Tensor theirs = own.clone();
    group.broadcast(theirs, {.root = 0, .description = "tensor of rank 0, to compare"})->wait();
    if (std::memcmp(theirs.raw_data(), own.raw_data(), own.nbytes()) != 0) equal = 0;
  }
  return smallest_on_all_ranks(group, equal);
}

std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : parameters)
    gradients.push_back(parameter.grad());
  return gradients;
}

}  // namespace brigade::lab
