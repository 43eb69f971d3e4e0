// Training jobs as rank jobs, for the commands `train` and `demo`.
#pragma once

#include <brigade/lab/recipes/digits.h>

#include <chrono>
#include <string>

namespace brigade::lab {

// Trains on `ranks` ranks and returns what rank 0 reports. Throws DistError with the text of the first rank that
// failed.
DigitsResult run_digits(const std::string& backend, int ranks, const DigitsOptions& options,
                        std::chrono::milliseconds timeout = std::chrono::seconds(30));

}  // namespace brigade::lab
