// The step count, on the device (kernels/optimizer.h), of parameters that have always moved together.
#pragma once

#include <brigade/core/tensor.h>

#include <cstddef>

namespace brigade::optim::detail {

struct AdamClock {
  Tensor numbers;
  size_t members = 0;  // parameters that use it

  int64_t steps() const { return static_cast<int64_t>(numbers.to_vector<double>().front()); }
};

}  // namespace brigade::optim::detail
