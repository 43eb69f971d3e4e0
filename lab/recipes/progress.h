// What a training goes on from, bit for bit on as many ranks: the file of --checkpoint and --resume.
#pragma once

#include <brigade/lab/recipes/recipe.h>
#include <brigade/optim/checkpoint.h>

namespace brigade::lab {

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

}  // namespace brigade::lab
