// A parameter by the name that it has in its module.
#pragma once

#include <brigade/core/tensor.h>

#include <string>

namespace brigade::dist {

struct NamedParameter {
  std::string name;
  Tensor tensor;
};

}  // namespace brigade::dist
