// Constant, uniform, normal, Kaiming and Xavier initialization, with their fans and gains.
#include <brigade/nn/init.h>

#include <brigade/autograd/write_log.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <cmath>

namespace brigade::nn::init {
namespace {

void check(const Tensor& tensor, const char* what) {
  if (!tensor.defined()) throw ValueError("{}: the tensor is undefined", what);
}

double gain_by_fan(const Tensor& tensor, double a, FanMode mode, Nonlinearity nonlinearity) {
  const Fans fans = fans_of(tensor);
  const int64_t fan = mode == FanMode::FanIn ? fans.in : fans.out;
  if (fan == 0) return 0;  // a tensor without elements has nothing to fill
  return calculate_gain(nonlinearity, a) / std::sqrt(static_cast<double>(fan));
}

}  // namespace

void uniform_(const Tensor& tensor, double low, double high, SourceLocation where) {
  check(tensor, "uniform_");
  kernels::fill_uniform(tensor, kernels::reserve_random(tensor), low, high);
  tensor.bump_version();
  autograd::note_write(tensor, "uniform_", where);
}

void normal_(const Tensor& tensor, double mean, double stddev, SourceLocation where) {
  check(tensor, "normal_");
  kernels::fill_normal(tensor, kernels::reserve_random(tensor), mean, stddev);
  tensor.bump_version();
  autograd::note_write(tensor, "normal_", where);
}

void constant_(const Tensor& tensor, double value, SourceLocation where) {
  check(tensor, "constant_");
  kernels::fill(tensor, value);
  tensor.bump_version();
  autograd::note_write(tensor, "constant_", where);
}

void ones_(const Tensor& tensor, SourceLocation where) { constant_(tensor, 1, where); }
void zeros_(const Tensor& tensor, SourceLocation where) { constant_(tensor, 0, where); }

Fans fans_of(const Tensor& tensor) {
  check(tensor, "fan in and fan out");
  if (tensor.dim() < 2) {
    throw ShapeError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, got {}",
                     tensor.sizes());
  }
  int64_t kernel = 1;
  for (int d = 2; d < tensor.dim(); ++d)
    kernel *= tensor.sizes()[d];
  return {tensor.sizes()[1] * kernel, tensor.sizes()[0] * kernel};
}

double calculate_gain(Nonlinearity nonlinearity, double negative_slope) {
  switch (nonlinearity) {
    case Nonlinearity::Tanh: return 5.0 / 3.0;
    case Nonlinearity::ReLU: return std::sqrt(2.0);
    case Nonlinearity::LeakyReLU: return std::sqrt(2.0 / (1 + negative_slope * negative_slope));
    case Nonlinearity::SELU: return 0.75;
    case Nonlinearity::Linear:
    case Nonlinearity::Sigmoid: break;
  }
  return 1;
}

Nonlinearity nonlinearity_from_name(const std::string& name) {
  if (name == "linear" || name == "conv1d" || name == "conv2d" || name == "conv3d" || name == "conv_transpose1d" ||
      name == "conv_transpose2d" || name == "conv_transpose3d")
    return Nonlinearity::Linear;
  if (name == "sigmoid") return Nonlinearity::Sigmoid;
  if (name == "tanh") return Nonlinearity::Tanh;
  if (name == "relu") return Nonlinearity::ReLU;
  if (name == "leaky_relu") return Nonlinearity::LeakyReLU;
  if (name == "selu") return Nonlinearity::SELU;
  throw ValueError("Unsupported nonlinearity {}", name);
}

void kaiming_uniform_(const Tensor& tensor, double a, FanMode mode, Nonlinearity nonlinearity, SourceLocation where) {
  const double bound = std::sqrt(3.0) * gain_by_fan(tensor, a, mode, nonlinearity);
  uniform_(tensor, -bound, bound, where);
}

void kaiming_normal_(const Tensor& tensor, double a, FanMode mode, Nonlinearity nonlinearity, SourceLocation where) {
  normal_(tensor, 0, gain_by_fan(tensor, a, mode, nonlinearity), where);
}

void xavier_uniform_(const Tensor& tensor, double gain, SourceLocation where) {
  const Fans fans = fans_of(tensor);
  const double bound = gain * std::sqrt(6.0 / static_cast<double>(fans.in + fans.out));
  uniform_(tensor, -bound, bound, where);
}

void xavier_normal_(const Tensor& tensor, double gain, SourceLocation where) {
  const Fans fans = fans_of(tensor);
  normal_(tensor, 0, gain * std::sqrt(2.0 / static_cast<double>(fans.in + fans.out)), where);
}

void reset_parameters(const Tensor& weight, const Tensor& bias, SourceLocation where) {
  kaiming_uniform_(weight, std::sqrt(5.0), FanMode::FanIn, Nonlinearity::LeakyReLU, where);
  if (!bias.defined()) return;
  const int64_t fan = fans_of(weight).in;
  const double bound = fan == 0 ? 0 : 1 / std::sqrt(static_cast<double>(fan));
  uniform_(bias, -bound, bound, where);
}

}  // namespace brigade::nn::init
