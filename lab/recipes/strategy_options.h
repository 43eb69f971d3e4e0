// The options of DDP that --strategy and --bucket-mb ask for.
#pragma once

#include <brigade/dist/ddp/distributed_data_parallel.h>

#include <string>

namespace brigade::lab {

// `bucket_mb`: cap of the buckets in MiB; 0: DDP's own. Throws ValueError that lists the known names.
dist::DDPOptions strategy_options(const std::string& name, double bucket_mb = 0);

}  // namespace brigade::lab
