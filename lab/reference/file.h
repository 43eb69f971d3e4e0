// Checks a user's file (docs/check.md): one operation, or one step of a built-in model.
#pragma once

#include <brigade/core/compare.h>
#include <brigade/core/device.h>
#include <brigade/core/dtype.h>

#include <optional>
#include <string>

namespace brigade::lab::reference {

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
