// A module whose backward does nothing but hand over gradients that are known beforehand, one
// parameter after the other: what is left of a step when the network costs nothing.
#pragma once

#include <brigade/nn/nn.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace brigade::lab::bench {

// What a node of backward does with a gradient.
enum class Gives : uint8_t {
  Writes,  // to where it belongs, if there is such a place: a bucket (as matrix products and convolutions do)
  Hands,   // hands over memory of its own
};

struct GivenGradientsOptions {
  int64_t bytes = 0;  // of all gradients
  int64_t count = 1;  // parameters of equal size: at least one element each
  DType dtype = DType::Float32;
  Gives gives = Gives::Writes;
  uint64_t seed = 1;  // of the gradients: another one on each rank
  // How long backward takes, spread evenly over the parameters. The rank sleeps meanwhile: no
  // processor is taken from what goes on beside.
  std::chrono::nanoseconds compute{0};
};

// The elements of each of `count` parameters of together `bytes`; 0: they do not fit.
int64_t numel_of_each(int64_t bytes, int64_t count, DType dtype) noexcept;

// Parameters "p.0", "p.1", ...; the last one's gradient comes first.
struct GivenGradientsImpl : nn::Module {
  // Throws ValueError where there would be parameters without an element.
  explicit GivenGradientsImpl(const GivenGradientsOptions& options);
  // Of one element; its backward gives parameter i the gradient i. `x` is not looked at.
  Tensor forward(const Tensor& x);
  int64_t bytes() const noexcept;  // of all gradients: `options.bytes`, or somewhat less

  GivenGradientsOptions options;
  nn::ParameterList p{nullptr};
  std::vector<Tensor> gradients;
};
BRIGADE_MODULE(GivenGradients);

}  // namespace brigade::lab::bench
