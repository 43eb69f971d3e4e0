// Precision names, spelled as in Lightning: the dtypes that a training job computes in.
#pragma once

#include <brigade/core/tensor.h>

#include <optional>
#include <string>

namespace brigade::amp {

struct Precision {
  std::string name;               // "16-mixed"
  DType parameters;               // also of the data
  std::optional<DType> autocast;  // of forward and loss; nothing: no region
  bool scales = false;            // a gradient scaler scales the loss
};

// Also takes Lightning's short names: "64", "32", "16" (16-mixed) and "bf16" (bf16-mixed). Throws
// ValueError that lists the known names.
const Precision& find_precision(const std::string& name);
// "32-true, 16-mixed, ..."
std::string precision_names();

}  // namespace brigade::amp
