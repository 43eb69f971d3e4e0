// Training jobs as rank jobs, for the commands `train` and `demo`.
#pragma once

#include <brigade/lab/recipes/recipe.h>

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <string>

namespace brigade::lab {

// Trains on `ranks` ranks and returns what rank 0 reports. Throws as require_ok() does.
TrainResult run_recipe(const Recipe& recipe, const std::string& backend, int ranks, const TrainOptions& options,
                       std::chrono::milliseconds timeout = std::chrono::seconds(30));

// A row of "results" (docs/cli.md).
nlohmann::json train_row(const Recipe& recipe, int ranks, const std::string& backend, const TrainOptions& options,
                         const TrainResult& result);

}  // namespace brigade::lab
