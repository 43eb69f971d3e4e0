// A parameter by the name that it has in its module.
#pragma once

#include <brigade/core/tensor.h>

#include <string>

namespace brigade::dist {

struct NamedParameter {
  std::string name;
  Tensor tensor;
  const char* module_type = "";  // of the module that holds it, as the tape has it ("Linear"); "" where not known
};

}  // namespace brigade::dist
