// The step of the recipe `gan`, in the forms that people write under DDP.
#pragma once

#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/lab/recipes/gan/networks.h>
#include <brigade/optim/optim.h>

#include <memory>
#include <string>

namespace brigade::lab {

// One training on one rank: the wrappers and optimizers of a form.
class GanTraining {
 public:
  // `form`: as `brigade train --list` names them. Throws ValueError for another.
  GanTraining(DigitsGan net, const dist::ProcessGroupPtr& group, const std::string& form, double lr,
              const dist::DDPOptions& options = {});
  ~GanTraining();

  struct Losses {
    Tensor discriminator, generator;
  };
  // One step of each optimizer.
  Losses step(const GanBatch& batch);

  optim::Adam for_generator, for_discriminator;
  // Of the wrapper that has the generator.
  dist::Reducer& reducer();

 private:
  struct Loop;
  class Wrapped;
  class OneWrapper;
  class TwoWrappers;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<Wrapped> net_;
};

}  // namespace brigade::lab
