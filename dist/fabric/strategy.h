// Strategy: how the ranks of a training job synchronize, given by a name as in Lightning or by DDP options.
//
//   Fabric fabric({.strategy = "ddp_find_unused_parameters_true"});
//   Fabric fabric({.strategy = dist::DDPStrategy{.find_unused_parameters = true, .bucket_cap_mb = 50}});
#pragma once

#include <brigade/dist/ddp/distributed_data_parallel.h>

#include <string>
#include <utility>

namespace brigade::dist {

using DDPStrategy = DDPOptions;

class Strategy {
 public:
  // "auto" (DDP with several ranks, no wrapper with one), "ddp", "ddp_find_unused_parameters_true",
  // "ddp_find_unused_parameters_false", "ddp_static_graph". Throws ValueError listing these for any other name.
  Strategy(const std::string& name);                                            // NOLINT: written as an option
  Strategy(const char* name) : Strategy(std::string(name)) {}                   // NOLINT
  Strategy(DDPOptions options) : name_("ddp"), options_(std::move(options)) {}  // NOLINT

  const std::string& name() const noexcept { return name_; }
  const DDPOptions& options() const noexcept { return options_; }
  // Whether modules are wrapped in DistributedDataParallel at this world size.
  bool wraps(int world_size) const noexcept { return name_ != "auto" || world_size > 1; }

 private:
  std::string name_;
  DDPOptions options_;
};

// "auto, ddp, ..."
std::string strategy_names();

}  // namespace brigade::dist
