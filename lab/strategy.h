// Strategy names: how a training job synchronises, as Lightning spells them.
#pragma once

#include <brigade/dist/ddp/distributed_data_parallel.h>

#include <string>
#include <vector>

namespace brigade::lab {

// "ddp", "ddp_find_unused_parameters_true".
const std::vector<std::string>& strategy_names();
// `bucket_mb`: cap of the buckets in MiB; 0: DDP's own. Throws ValueError that lists the known names.
dist::DDPOptions strategy_options(const std::string& name, double bucket_mb = 0);

}  // namespace brigade::lab
