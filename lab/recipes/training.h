// What the training loops of recipes share: device and data, the region of their precision, the scaler
// in the checkpoint, the ends of a result, and numbers that are asked of all ranks.
#pragma once

#include <brigade/amp/autocast.h>
#include <brigade/amp/grad_scaler.h>
#include <brigade/data/data_loader.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/fabric/fabric.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/lab/data_path.h>
#include <brigade/lab/recipes/recipe.h>
#include <brigade/lab/recipes/step_log.h>
#include <brigade/optim/checkpoint.h>

#include <string>
#include <vector>

namespace brigade::lab {

// --- What a training goes on from, bit for bit on as many ranks: the file of --checkpoint and --resume.

// How far a training has come, and the options that have to be the same when it goes on. One object
// per training; models and optimizers are named to `checkpoint` by the recipe.
class Progress {
 public:
  // `begin`: parts of a checkpoint that are there already (Fabric::checkpoint).
  explicit Progress(const TrainOptions& options, optim::Checkpoint begin = {});
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  int64_t steps = 0;  // that are done
  optim::Checkpoint checkpoint;

  // Where there is a file to resume: loads all that `checkpoint` names. Throws ValueError when the
  // file belongs to another job, or `all` steps are done.
  void resume(int64_t all);
  // Rank 0 writes the file where one is wanted: after each epoch, every --save-every steps, and after the last step.
  void save(const dist::ProcessGroup& group, int64_t per_epoch, int64_t all) const;

 private:
  optim::OptimizerState options_of_job() const;
  void must_be_of_job(const optim::OptimizerState& saved) const;

  TrainOptions options_;
};

// --- Whether all ranks hold the same bits.

// Collective; the same answer on every rank. Undefined tensors have to be undefined everywhere.
bool same_on_all_ranks(dist::ProcessGroup& group, const std::vector<Tensor>& tensors);
// The gradients of these parameters, in their order.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters);

// --- The options of DDP that --strategy and --bucket-mb ask for.

// `bucket_mb`: cap of the buckets in MiB; 0: DDP's own. Throws ValueError that lists the known names.
dist::DDPOptions strategy_options(const std::string& name, double bucket_mb = 0);

// --- The loop: device and data, its precision, the scaler in the checkpoint, numbers that are asked of all ranks.

// The device of the options, made the current one. Throws DeviceError.
Device ready_device(const TrainOptions& options, const dist::ProcessGroup& group);
// The digits in the dtype of the precision, on that device.
Digits digits_on(Device device, const amp::Precision& precision);
// Device, strategy, buckets and precision of the options, for a Fabric on the ranks of a recipe. `change`: what a form
// wants of DDP besides.
dist::FabricOptions fabric_options(const TrainOptions& options,
                                   const std::function<void(dist::DDPOptions&)>& change = {});
// Of a global batch. Throws ValueError where it is not a multiple of the ranks, or larger than the
// `examples` that there are, and for less than 1 epoch.
int64_t batch_of_a_rank(const TrainOptions& options, const dist::ProcessGroup& group, int64_t examples);
// Steps of the training: as many as --epochs or --steps say.
int64_t steps_of(const TrainOptions& options, int64_t per_epoch);
// Standard normal numbers of this shape for each example of this rank in step number `step`: a stream
// of its own per step, dealt to the ranks in turns as a sampler deals examples. So an example has the
// same noise on any number of ranks, and after a resume. [batch of a rank, shape..]
Tensor noise_of_step(const dist::ProcessGroup& group, const TrainOptions& options, int64_t step, const Shape& shape,
                     TensorOptions like);
// Where TrainResult::trace is wanted.
void keep_trace(dist::DistributedDataParallelBase& ddp, const TrainOptions& options);
// The examples in global batches of the options, of which each rank gets its part; what does not fill
// one is left out. Throws as batch_of_a_rank.
dist::FabricDataLoader<data::Example, data::Example> load_in_batches(dist::Fabric& fabric, const Examples& examples,
                                                                     const TrainOptions& options, bool shuffle = true);
// Which batch comes next, as a part of a checkpoint. The loader has to live as long as it.
void add_loader(optim::Checkpoint& checkpoint, data::DataLoaderBase& loader);
// The scaler's state as a part of a checkpoint, where there is a scaler.
void add_scaler(optim::Checkpoint& checkpoint, amp::GradScaler& scaler);

// The loader itself, of one that a Fabric has set up.
inline data::DataLoaderBase& loader_of(data::DataLoaderBase& loader) { return loader; }
template <class E, class Batch>
data::DataLoaderBase& loader_of(const dist::FabricDataLoader<E, Batch>& loader) {
  return *loader;
}

// step(batch) for each of the steps that are left, `steps` in all, over the loader's epochs. After each it counts in
// `progress`, and is saved where that is wanted.
template <class Loader, class Step>
void train_on(Loader& loader, Progress& progress, const dist::ProcessGroup& group, int64_t steps, Step&& step) {
  const int64_t per_epoch = loader_of(loader).size();
  while (progress.steps < steps) {
    loader_of(loader).set_epoch(static_cast<uint64_t>(progress.steps / per_epoch));
    for (const data::Example& batch : loader) {
      step(batch);
      ++progress.steps;
      progress.save(group, per_epoch, steps);
      if (progress.steps == steps) break;
    }
  }
}

// What is known of a training before its first step.
TrainResult begun(Device device, const Progress& progress, int64_t steps_per_epoch);
// Whether the ranks ended alike, and the last line of the log. Collective.
TrainResult ended(TrainResult result, dist::ProcessGroup& group, const std::vector<Tensor>& parameters, StepLog& log);

// The scale and the steps that were left out for it, as metrics, where the precision scales.
void note_scaler(const dist::Fabric& fabric, std::initializer_list<const optim::Optimizer*> optimizers,
                 TrainResult& result);

// Share of the examples whose largest logit is the label's.
double accuracy_of(const Tensor& logits, const Tensor& labels);
// The mean of a number over the ranks. Collective.
double mean_over_ranks(dist::ProcessGroup& group, double value, const char* about);
// Adds the kinds of warnings that the wrapper has given to TrainResult::warnings.
void note_warnings(const dist::DistributedDataParallelBase& wrapper, TrainResult& result);

}  // namespace brigade::lab
