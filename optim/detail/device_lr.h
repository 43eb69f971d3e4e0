// The learning rate of a group in the memory of devices, where captured steps read it.
#pragma once

#include <brigade/core/tensor.h>

#include <vector>

namespace brigade::optim::detail {

class DeviceLr {
 public:
  // float64, one element, on the parameter's device, with this value. Throws ValueError in a capture that would have to
  // write it: each replay would write it again.
  Tensor beside(const Tensor& parameter, double lr, SourceLocation where);
  // Sets the value on all devices that have it.
  void set(double lr);

 private:
  struct Copy {
    Tensor number;
    double value;
  };
  std::vector<Copy> copies_;
};

}  // namespace brigade::optim::detail
