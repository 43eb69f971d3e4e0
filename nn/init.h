// Initialization in place, with PyTorch's names and distributions. Floating dtypes.
//
// Random numbers come from the calling thread's Philox generator: after manual_seed(s) every rank makes the same model,
// on any device. Nothing is recorded; versions are bumped, and writes after a module was wrapped are logged with their
// line. These functions throw ValueError for an undefined tensor.
#pragma once

#include <brigade/core/tensor.h>

#include <string>

namespace brigade::nn::init {

void uniform_(const Tensor& tensor, double low = 0, double high = 1, SourceLocation where = SourceLocation::current());
void normal_(const Tensor& tensor, double mean = 0, double stddev = 1,
             SourceLocation where = SourceLocation::current());
void constant_(const Tensor& tensor, double value, SourceLocation where = SourceLocation::current());
void ones_(const Tensor& tensor, SourceLocation where = SourceLocation::current());
void zeros_(const Tensor& tensor, SourceLocation where = SourceLocation::current());

// The number of connections into and out of one unit: for a weight [out, in, kernel...], fan in is in * kernel elements
// and fan out is out * kernel elements. Throws ShapeError for fewer than two dimensions.
struct Fans {
  int64_t in, out;
};
Fans fans_of(const Tensor& tensor);

enum class FanMode : uint8_t { FanIn, FanOut };
enum class Nonlinearity : uint8_t { Linear, Sigmoid, Tanh, ReLU, LeakyReLU, SELU };
// In this order: 1, 1, 5/3, sqrt(2), sqrt(2 / (1 + negative_slope^2)), 3/4.
double calculate_gain(Nonlinearity nonlinearity, double negative_slope = 0.01);
// Takes PyTorch's names: "linear", "conv1d" ... "conv_transpose3d", "sigmoid", "tanh", "relu",
// "leaky_relu", "selu". Throws ValueError "Unsupported nonlinearity ...".
Nonlinearity nonlinearity_from_name(const std::string& name);
inline double calculate_gain(const std::string& nonlinearity, double negative_slope = 0.01) {
  return calculate_gain(nonlinearity_from_name(nonlinearity), negative_slope);
}

// He et al., arXiv 1502.01852. `a`: the negative slope of LeakyReLU. Uniform within gain * sqrt(3 / fan), or normal
// with standard deviation gain / sqrt(fan). They throw ShapeError for fewer than two dimensions.
void kaiming_uniform_(const Tensor& tensor, double a = 0, FanMode mode = FanMode::FanIn,
                      Nonlinearity nonlinearity = Nonlinearity::LeakyReLU,
                      SourceLocation where = SourceLocation::current());
void kaiming_normal_(const Tensor& tensor, double a = 0, FanMode mode = FanMode::FanIn,
                     Nonlinearity nonlinearity = Nonlinearity::LeakyReLU,
                     SourceLocation where = SourceLocation::current());
// Glorot and Bengio, AISTATS 2010. Uniform within gain * sqrt(6 / (fan_in + fan_out)), or normal with standard
// deviation gain * sqrt(2 / (fan_in + fan_out)). They throw ShapeError for fewer than two dimensions.
void xavier_uniform_(const Tensor& tensor, double gain = 1, SourceLocation where = SourceLocation::current());
void xavier_normal_(const Tensor& tensor, double gain = 1, SourceLocation where = SourceLocation::current());

// The normal distribution truncated to `a` .. `b` (absolute values, not multiples of the deviation). Throws ValueError
// unless a < b and stddev > 0.
void trunc_normal_(const Tensor& tensor, double mean = 0, double stddev = 1, double a = -2, double b = 2,
                   SourceLocation where = SourceLocation::current());
// Ones on the diagonal of a matrix, zeros elsewhere. Throws ShapeError unless there are 2
// dimensions.
void eye_(const Tensor& tensor, SourceLocation where = SourceLocation::current());
// A convolution weight [out, in, kernel...] that passes through as many channels as possible in each of the groups: a 1
// in the middle of the kernel. Throws ShapeError unless there are 3 to 5 dimensions, the first divisible by `groups`.
void dirac_(const Tensor& tensor, int64_t groups = 1, SourceLocation where = SourceLocation::current());
// Saxe, McClelland and Ganguli, arXiv 1312.6120. As a matrix [rows, all other dimensions]: orthonormal rows, or columns
// if there are fewer of them, times gain; uniform over all such matrices. Throws ShapeError for fewer than two
// dimensions.
void orthogonal_(const Tensor& tensor, double gain = 1, SourceLocation where = SourceLocation::current());
// Martens, ICML 2010: normal with deviation `stddev`, except for ceil(sparsity * rows) zeros in each column. Throws
// ShapeError unless there are 2 dimensions, ValueError unless 0 <= sparsity <= 1.
void sparse_(const Tensor& tensor, double sparsity, double stddev = 0.01,
             SourceLocation where = SourceLocation::current());

// PyTorch's defaults for Linear and Conv: kaiming_uniform_(weight, a = sqrt(5)), which is uniform within
// 1 / sqrt(fan_in), and the same bound for the bias (which may be undefined).
void reset_parameters(const Tensor& weight, const Tensor& bias, SourceLocation where = SourceLocation::current());

}  // namespace brigade::nn::init
