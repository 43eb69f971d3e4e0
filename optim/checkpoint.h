// Checkpoint: all that training needs to go on from where it was, bit for bit, in one file.
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
// The file is a safetensors file (core/safetensors.h), so that other programs can look into it:
// tensors are called "<part>/<name>" ("model/fc1.weight", "adam/0.exp_avg"), numbers lie in its
// metadata under such names, and for each part there is its kind. It appears whole or not at all:
// whenever a save is cut short, the file before it stands. Its checksums tell a file that a disk or
// a network has changed, whichever bit it is.
//
// Gradients are not saved: save between a step and the next backward. In a distributed job one rank
// saves what is alike on all ranks, and all ranks load.
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
  // Every part of the file has to be named; else those that are not stay unread, so that a program that has the model
  // alone loads it from the checkpoint of a training.
  bool strict = true;
};

class Checkpoint {
 public:
  // Each names a part and returns *this. What is given is used by save and load, and has to live
  // until then. Throw ValueError for a name that is taken, empty, "brigade", or contains '/'.
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
  // Anything else whose state can be said in tensors and numbers (a loss scaler). `load` takes a
  // state that `save` gave, and may throw, having changed nothing, when it does not fit; the other
  // parts are then put back.
  Checkpoint& part(const std::string& name, std::function<OptimizerState()> save,
                   std::function<void(const OptimizerState&)> load);

  // Throws IoError when the file cannot be written; the old one then stands.
  void save(const std::string& path) const;
  // Throws IoError for a file that cannot be read or is damaged; ValueError that names the part,
  // and what is missing, unknown or differs in shape or dtype, when the file was saved from other
  // parts. Then nothing has been changed.
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
