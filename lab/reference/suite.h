// What `brigade check` runs: all cases of the table, or a user's file.
#pragma once

#include <brigade/core/compare.h>
#include <brigade/core/device.h>
#include <brigade/core/dtype.h>
#include <brigade/lab/reference/check_case.h>

#include <functional>
#include <optional>
#include <string>

namespace brigade::lab::reference {

// --- Runs all cases of the table against their fixtures. Nothing is skipped: a case with an unknown operation, a
// fixture that is missing or was made from another row, and a fixture without a row are failures.

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

// --- Checks a user's file (docs/check.md): one operation, or one step of a built-in model.

struct FileOptions {
  std::string model, op;       // default: from the file's metadata; at most one of them
  std::optional<DType> dtype;  // dtype to compute in; default: the file's
  Device device;
  double bound = 0;  // relative to the scale of each tensor; 0: the default
};

struct FileResult {
  std::string kind;  // "op" or "model"
  std::string name;
  DType dtype = DType::Float64;
  check::Report report;
};

// Throws IoError for a file that cannot be read, ValueError for invalid metadata, and what the operation or the
// model throws for inputs that it does not accept.
FileResult check_file(const std::string& path, const FileOptions& options);

}  // namespace brigade::lab::reference
