#include <brigade/nn/init.h>

#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <cmath>

namespace brigade::nn::init {

namespace {
PhiloxState reserve(const Tensor& tensor) { return default_generator().reserve(static_cast<uint64_t>(tensor.numel())); }
}  // namespace

void uniform_(const Tensor& tensor, double low, double high) {
  kernels::fill_uniform(tensor, reserve(tensor), low, high);
  tensor.bump_version();
}

void normal_(const Tensor& tensor, double mean, double stddev) {
  kernels::fill_normal(tensor, reserve(tensor), mean, stddev);
  tensor.bump_version();
}

void constant_(const Tensor& tensor, double value) {
  kernels::fill(tensor, value);
  tensor.bump_version();
}

Fans fans_of(const Tensor& tensor) {
  if (tensor.dim() < 2)
    throw ShapeError("fan in and fan out need at least 2 dimensions, got " + to_string(tensor.sizes()));
  int64_t kernel = 1;
  for (int d = 2; d < tensor.dim(); ++d)
    kernel *= tensor.sizes()[d];
  return {tensor.sizes()[1] * kernel, tensor.sizes()[0] * kernel};
}

void kaiming_uniform_(const Tensor& tensor, double a) {
  const double bound = std::sqrt(2 / (1 + a * a)) * std::sqrt(3.0 / static_cast<double>(fans_of(tensor).in));
  uniform_(tensor, -bound, bound);
}

void kaiming_normal_(const Tensor& tensor, double a) {
  normal_(tensor, 0, std::sqrt(2 / (1 + a * a)) / std::sqrt(static_cast<double>(fans_of(tensor).in)));
}

void xavier_uniform_(const Tensor& tensor, double gain) {
  const Fans fans = fans_of(tensor);
  const double bound = gain * std::sqrt(6.0 / static_cast<double>(fans.in + fans.out));
  uniform_(tensor, -bound, bound);
}

void xavier_normal_(const Tensor& tensor, double gain) {
  const Fans fans = fans_of(tensor);
  normal_(tensor, 0, gain * std::sqrt(2.0 / static_cast<double>(fans.in + fans.out)));
}

}  // namespace brigade::nn::init
