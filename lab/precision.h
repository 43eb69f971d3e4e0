// Precision names: which dtypes a training job computes in, as Lightning spells them.
#pragma once

#include <brigade/core/tensor.h>

#include <optional>
#include <string>

namespace brigade::lab {

struct Precision {
  std::string name;               // "16-mixed"
  DType parameters;               // and data
  std::optional<DType> autocast;  // of forward and loss; nothing: no region
  bool scales = false;            // the loss, by a gradient scaler
};

// Throws ValueError that lists the known names.
const Precision& find_precision(const std::string& name);
// "32-true, 16-mixed, ..."
std::string precision_names();

}  // namespace brigade::lab
