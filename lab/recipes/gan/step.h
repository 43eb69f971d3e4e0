// The step of the recipe `gan`, in the forms that people write with Lightning Fabric under DDP.
#pragma once

#include <brigade/dist/fabric/fabric.h>
#include <brigade/lab/recipes/gan/networks.h>
#include <brigade/optim/optim.h>

#include <functional>
#include <memory>
#include <string>

namespace brigade::lab {

// One training on one rank: what a form sets up, and its two optimizers.
class GanTraining {
 public:
  // The options with what the form asks of the strategy. Throws ValueError for another form than
  // `brigade train --list` names.
  static dist::FabricOptions options_for(const std::string& form, dist::FabricOptions options);
  // `fabric`, with a strategy that wraps, has to live as long as this. Throws as options_for.
  GanTraining(DigitsGan net, dist::Fabric& fabric, const std::string& form, double lr);
  ~GanTraining();

  struct Losses {
    Tensor discriminator, generator;
  };
  // One step of each optimizer.
  Losses step(const GanBatch& batch);

  optim::Adam for_generator, for_discriminator;
  // The one that has the generator.
  dist::DistributedDataParallelBase& wrapper();

 private:
  struct Loop;
  class SetUp;
  class OneWrapper;
  class TwoWrappers;
  Tensor take_turn(dist::FabricOptimizer& optimizer, const std::function<Tensor()>& loss_of, bool keeps_graph);

  dist::Fabric& fabric_;
  std::unique_ptr<Loop> loop_;
  dist::FabricOptimizer generator_, discriminator_;
  std::unique_ptr<SetUp> net_;
};

}  // namespace brigade::lab
