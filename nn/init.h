// Initialisation in place, with PyTorch's names and distributions. Floating dtypes.
//
// Random numbers come from the calling thread's Philox generator: after manual_seed(s) every rank makes the same model,
// whatever its device. Nothing is recorded; versions are bumped. Throw ValueError for an undefined tensor.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade::nn::init {

void uniform_(const Tensor& tensor, double low = 0, double high = 1);
void normal_(const Tensor& tensor, double mean = 0, double stddev = 1);
void constant_(const Tensor& tensor, double value);
void ones_(const Tensor& tensor);
void zeros_(const Tensor& tensor);

// Connections into and out of one unit: of a weight [out, in, kernel...], fan in is in * kernel elements, fan out is
// out * kernel elements. Throws ShapeError for fewer than two dimensions.
struct Fans {
  int64_t in, out;
};
Fans fans_of(const Tensor& tensor);

enum class FanMode : uint8_t { FanIn, FanOut };
enum class Nonlinearity : uint8_t { Linear, Sigmoid, Tanh, ReLU, LeakyReLU, SELU };
// 1, 1, 5/3, sqrt(2), sqrt(2 / (1 + negative_slope^2)), 3/4.
double calculate_gain(Nonlinearity nonlinearity, double negative_slope = 0.01);

// He et al., arXiv 1502.01852. `a`: the negative slope of LeakyReLU. Within gain * sqrt(3 / fan), and with standard
// deviation gain / sqrt(fan). Throw ShapeError for fewer than two dimensions.
void kaiming_uniform_(const Tensor& tensor, double a = 0, FanMode mode = FanMode::FanIn,
                      Nonlinearity nonlinearity = Nonlinearity::LeakyReLU);
void kaiming_normal_(const Tensor& tensor, double a = 0, FanMode mode = FanMode::FanIn,
                     Nonlinearity nonlinearity = Nonlinearity::LeakyReLU);
// Glorot and Bengio, AISTATS 2010. Within gain * sqrt(6 / (fan_in + fan_out)), and with standard deviation
// gain * sqrt(2 / (fan_in + fan_out)). Throw ShapeError for fewer than two dimensions.
void xavier_uniform_(const Tensor& tensor, double gain = 1);
void xavier_normal_(const Tensor& tensor, double gain = 1);

// PyTorch's defaults for Linear and Conv: kaiming_uniform_(weight, a = sqrt(5)), which is uniform within
// 1 / sqrt(fan_in), and the same bound for the bias (which may be undefined).
void reset_parameters(const Tensor& weight, const Tensor& bias);

}  // namespace brigade::nn::init
