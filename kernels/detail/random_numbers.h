// From the words of the random stream to numbers, alike on every device.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/core/random.h>

#include <array>
#include <cmath>
#include <numbers>

namespace brigade::kernels {

// `words`: a block of the stream; k: which of its four elements.
struct Uniform {
  double low, high;
  BRIGADE_HOST_DEVICE double operator()(const std::array<uint32_t, 4>& words, int k) const {
    return low + (high - low) * static_cast<double>(uniform_from_word(words[static_cast<size_t>(k)]));
  }
};

// Element k takes words k and k ^ 1: radius from the even one, angle from the odd one; the even element is the cosine,
// the odd one the sine (Box and Muller). In double, to be rounded once.
struct Normal {
  double mean, stddev;
  BRIGADE_HOST_DEVICE double operator()(const std::array<uint32_t, 4>& words, int k) const {
    const size_t even = static_cast<size_t>(k) & ~size_t{1};
    const double u1 = (static_cast<double>(words[even]) + 1.0) * 0x1p-32;  // in (0, 1]
    const double angle = 2 * std::numbers::pi * static_cast<double>(words[even + 1]) * 0x1p-32;
    const double radius = std::sqrt(-2 * std::log(u1));
    const double z = radius * (k % 2 == 0 ? std::cos(angle) : std::sin(angle));
    return mean + stddev * z;
  }
};

}  // namespace brigade::kernels
