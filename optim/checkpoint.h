// Checkpoint: everything that training needs to resume bit for bit, in one file.
//
//   optim::Checkpoint checkpoint;
//   checkpoint.module("model", *net).optimizer("adam", adam).scheduler("rate", cosine);
//   checkpoint.generator("random", default_generator()).number("step", step);
//   if (std::filesystem::exists(path)) checkpoint.load(path);
//   for (; step < steps; ++step) {
//     ...
//     if (step % 100 == 0) checkpoint.save(path);
//   }
//
// The file is a safetensors file (core/safetensors.h), so that other programs can read it: tensors are named
// "<part>/<name>" ("model/fc1.weight", "adam/0.exp_avg"), and the metadata holds numbers under such names and the kind
// of each part. Saving is atomic: if it is interrupted, the previous file stays. Checksums detect any bit that a disk
// or a network has changed.
//
// Gradients are not saved: save between a step and the next backward. In a distributed job one rank saves the state
// that is equal on all ranks, and all ranks load it.
#pragma once

#include <brigade/core/random.h>
#include <brigade/nn/module.h>
#include <brigade/optim/lr_scheduler/lr_scheduler.h>
#include <brigade/optim/lr_scheduler/plateau.h>
#include <brigade/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace brigade::optim {

struct CheckpointLoadOptions {
  // Every part of the file has to be named. If false, the other parts are skipped, so that a program that has only the
  // model can load it from a training checkpoint.
  bool strict = true;
};

class Checkpoint {
 public:
  // Each adds a named part and returns *this. save and load use the object, which has to live until then. They throw
  // ValueError for a name that is taken, empty, "brigade", or contains '/'.
  Checkpoint& module(const std::string& name, nn::Module& module);
  Checkpoint& optimizer(const std::string& name, Optimizer& optimizer);
  // A schedule of learning rates. The rates themselves belong to the optimizer: name both.
  Checkpoint& scheduler(const std::string& name, LRScheduler& scheduler);
  Checkpoint& scheduler(const std::string& name, ReduceLROnPlateau& scheduler);
  // Seed and position of a stream of random numbers (dropout, shuffling).
  Checkpoint& generator(const std::string& name, RandomGenerator& generator);
  // Counters and values of the training loop.
  Checkpoint& number(const std::string& name, int64_t& number);
  Checkpoint& number(const std::string& name, double& number);
  // Any other state that consists of tensors and numbers (a loss scaler). `load` takes a state that `save` returned. If
  // the state does not fit, `load` may throw without having changed anything; the other parts are then restored.
  Checkpoint& part(const std::string& name, std::function<OptimizerState()> save,
                   std::function<void(const OptimizerState&)> load);

  // Throws IoError when the file cannot be written; the old file then stays.
  void save(const std::string& path) const;
  // Throws IoError for a file that cannot be read or is damaged; ValueError for a file saved from other parts, naming
  // the part and the entries that are missing, unknown or differ in shape or dtype. Then nothing has been changed.
  //   Checkpoint().module("model", *net).load(path, {.strict = false});
  void load(const std::string& path, const CheckpointLoadOptions& options = {},
            SourceLocation where = SourceLocation::current());

 private:
  struct Custom {
    std::function<OptimizerState()> save;
    std::function<void(const OptimizerState&)> load;
    const char* kind = "state";
  };
  struct Part {
    std::string name;
    std::variant<nn::Module*, Optimizer*, RandomGenerator*, int64_t*, double*, Custom> what;
    const char* kind() const;  // "optimizer"
  };
  template <class Scheduler>
  Checkpoint& add_scheduler(const std::string& name, Scheduler& scheduler);
  Checkpoint& add(const std::string& name, decltype(Part::what) what);

  std::vector<Part> parts_;
};

}  // namespace brigade::optim
