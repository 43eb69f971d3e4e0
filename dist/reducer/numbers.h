// What a rank has measured in a backward: sizes of its gradients, and what is not finite.
//
// In a group that reduces on the device itself, the host does not wait for these numbers: they are read when the next
// backward begins, and sent in its words.
#pragma once

#include <brigade/dist/diagnosis/finished_backward.h>
#include <brigade/dist/diagnosis/moment.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace brigade::dist {

// log2 of a sum of squares; the payload has room for no more. 0 means "no gradient".
inline double logarithm(double sum) { return sum > 0 && std::isfinite(sum) ? std::log2(sum) : 0; }

struct Numbers {
  Moment moment;
  std::vector<double> sums_of_squares;  // per parameter; 0 if not measured
  std::vector<uint8_t> on_the_way;      // per parameter: measured on a device, not read yet; may be empty
  NonFinite non_finite;

  void take(uint32_t parameter, double sum) {
    sums_of_squares[parameter] = sum;
    if (!std::isfinite(sum)) non_finite.parameters.push_back(parameter);
  }
  bool any_non_finite() const noexcept { return !non_finite.parameters.empty() || non_finite.loss; }
};

}  // namespace brigade::dist
