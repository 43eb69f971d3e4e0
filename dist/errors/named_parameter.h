// A parameter with the name that it has in its module.
#pragma once

#include <brigade/core/tensor.h>

#include <string>

namespace brigade::dist {

struct NamedParameter {
  std::string name;
  Tensor tensor;
  const char* module_type = "";  // of the module that holds it, as on the tape ("Linear"); "" if unknown
};

}  // namespace brigade::dist
