// Training jobs as rank jobs, for the commands `train` and `demo`.
#pragma once

#include <brigade/lab/recipes/digits.h>

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <string>

namespace brigade::lab {

// Trains on `ranks` ranks and returns what rank 0 reports. Throws as require_ok() does.
DigitsResult run_digits(const std::string& backend, int ranks, const DigitsOptions& options,
                        std::chrono::milliseconds timeout = std::chrono::seconds(30));

// A row of "results" (docs/cli.md).
nlohmann::json train_row(int ranks, const std::string& backend, const DigitsOptions& options,
                         const DigitsResult& result);

}  // namespace brigade::lab
