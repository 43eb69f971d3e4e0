// Runs all cases of the table against their fixtures. Nothing is skipped: a case with an unknown operation, a
// fixture that is missing or was made from another row, and a fixture without a row are failures.
#pragma once

#include <brigade/lab/reference/check_case.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace brigade::lab::reference {

// The family of whole models; their "op" is the model's name.
inline constexpr const char* kModelsFamily = "models";

struct SuiteOptions {
  std::string folder;  // see reference_folder()
  Device device;
  std::optional<DType> dtype;                    // only cases in this dtype
  std::string only;                              // only cases whose family or id contains this text
  std::function<void(const Tensor&)> seen = {};  // as in CheckOptions
};

struct SuiteResult {
  std::string family, id, op;
  DType dtype = DType::Float64;
  CaseResult result;
};

// Calls `tell` with each case when it is done.
void run_suite(const SuiteOptions& options, const std::function<void(const SuiteResult&)>& tell);

}  // namespace brigade::lab::reference
