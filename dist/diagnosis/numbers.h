// What a rank has measured in a backward: sizes of its gradients, and what is not finite.
//
// In a group that reduces on the device itself, the host does not wait for these numbers: they are read when the next
// backward begins, and sent in its words.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/core/place.h>
#include <brigade/dist/errors/named_parameter.h>
#include <brigade/dist/reducer/past.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

// What this rank observed about non-finite numbers.
struct NonFinite {
  std::vector<uint32_t> parameters;
  std::vector<Tensor> device_losses;  // not read, since that would wait for the device
  bool loss = false;
  // The operation that was first not finite, "" if none is known; the line; both in words.
  std::string op;
  Place place;
  std::string text;

  // The loss of the backward that was called at `where` is not finite.
  void note_loss(SourceLocation where);
  // Looks at the scalar roots. Losses on a device are kept if `keep_device_losses`.
  void look_at_loss(const autograd::Plan& plan, bool keep_device_losses);
  // The first operation whose derivative is not finite.
  void note_derivative(const char* of_op, SourceLocation where, DType dtype);
};

// log2 of a sum of squares; the payload has room for no more. 0 means "no gradient".
inline double logarithm(double sum) { return sum > 0 && std::isfinite(sum) ? std::log2(sum) : 0; }

// Whether this rank's backward computed the gradient of any of the parameters from a scaled loss.
bool any_is_scaled(std::span<const NamedParameter> parameters);

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

// How far one value is from the others if those are equal: n values, one of them d away from the rest, have the variance
// d^2 (n - 1) / n^2. 0 for a single rank.
inline double distance_of_one(double variance, int ranks) {
  return ranks < 2 ? 0.0 : std::sqrt(variance) * ranks / std::sqrt(static_cast<double>(ranks - 1));
}

// What all ranks know of the sizes of their gradients in a backward.
struct Measured {
  int non_finite = 0;  // ranks with an infinite or NaN gradient
  // Derived from means and variances, which rounding blurs: these only warrant a closer look.
  bool outlier = false;  // one rank's gradients are much larger
  size_t alike = 0;      // buckets whose gradients seem bitwise equal on all ranks
};

}  // namespace brigade::dist
