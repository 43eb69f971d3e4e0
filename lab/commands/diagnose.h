// The result row of a planted fault, for the commands `diagnose` and `demo`.
#pragma once

#include <brigade/lab/faults/diagnosis.h>

#include <nlohmann/json_fwd.hpp>

namespace brigade::lab {

// A row of "results" (docs/cli.md).
nlohmann::json diagnosis_row(const Fault& fault, const DiagnoseOptions& options, const Diagnosis& found);

}  // namespace brigade::lab
