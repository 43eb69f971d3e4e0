// A module whose backward only hands over precomputed gradients, one parameter at a time: what remains of a step
// when the network itself costs nothing.
#pragma once

#include <brigade/nn/nn.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace brigade::lab::bench {

// How a backward node delivers its gradient.
enum class Gives : uint8_t {
  Writes,  // into its destination (a bucket) if there is one, as matrix products and convolutions do
  Hands,   // as a newly allocated tensor
};

struct GivenGradientsOptions {
  int64_t bytes = 0;  // of all gradients
  int64_t count = 1;  // parameters of equal size: at least one element each
  DType dtype = DType::Float32;
  Gives gives = Gives::Writes;
  uint64_t seed = 1;  // of the gradients; different on each rank
  // The duration of backward, spread evenly over the parameters. The rank sleeps, so it takes no CPU time from
  // concurrent work.
  std::chrono::nanoseconds compute{0};
};

// The number of elements of each of `count` parameters that take `bytes` in total; 0 when they do not fit.
int64_t numel_of_each(int64_t bytes, int64_t count, DType dtype) noexcept;

// Parameters "p.0", "p.1", ...; the last one's gradient comes first.
struct GivenGradientsImpl : nn::Module {
  // Throws ValueError when the parameters would have no elements.
  explicit GivenGradientsImpl(const GivenGradientsOptions& options);
  // Returns one element, whose backward gives parameter i the gradient i. Ignores `x`.
  Tensor forward(const Tensor& x);
  int64_t bytes() const noexcept;  // of all gradients: `options.bytes`, or somewhat less

  GivenGradientsOptions options;
  nn::ParameterList p{nullptr};
  std::vector<Tensor> gradients;
};
BRIGADE_MODULE(GivenGradients);

}  // namespace brigade::lab::bench
