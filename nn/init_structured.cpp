// Initializers that are computed on the host, in double, and then copied: truncated normal, diagonal, orthogonal and
// sparse ones.
#include <brigade/autograd/write_log.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/init.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <tuple>
#include <utility>
#include <vector>

namespace brigade::nn::init {
namespace {

void check_dims(const Tensor& tensor, const char* what, int low, int high) {
  if (!tensor.defined()) throw ValueError("{}: the tensor is undefined", what);
  if (!is_floating_point(tensor.dtype()))
    throw DTypeError("{}: expected a floating dtype, got {}", what, describe(tensor));
  if (tensor.dim() >= low && tensor.dim() <= high) return;
  throw ShapeError("{}: expected {} dimensions, got {}", what,
                   low == high ? std::to_string(low) : std::to_string(low) + " to " + std::to_string(high),
                   describe(tensor));
}

constexpr int kAnyDim = 1 << 20;

// Runs `make` on float64 values in row-major order, initially all 0, and copies them into the tensor.
void fill_from_host(const Tensor& tensor, const char* what, SourceLocation where,
                    const std::function<void(double*)>& make) {
  const Tensor host = zeros(tensor.sizes(), kFloat64);
  make(host.data_ptr<double>());
  kernels::copy(tensor, host);
  tensor.bump_version();
  autograd::note_write(tensor, what, where);
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

// x with normal_cdf(x) = p within [low, high], by bisection accelerated with Newton's method.
double normal_quantile(double p, double low, double high) {
  double x = std::clamp(0.0, low, high);
  for (int turn = 0; turn < 100 && high - low > 1e-15 * std::max(1.0, std::abs(x)); ++turn) {
    const double error = normal_cdf(x) - p;
    (error > 0 ? high : low) = x;
    const double slope = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    const double next = x - error / slope;
    if (std::abs(next - x) <= 1e-15 * std::max(1.0, std::abs(x))) return x;
    x = next > low && next < high ? next : low + (high - low) / 2;
  }
  return x;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

// Makes the vectors orthonormal one after another (Gram and Schmidt): the Q of a QR factorization whose R has a
// positive diagonal. If a subtraction removed much of a vector, the projection is subtracted once more to remove the
// rounding errors (Kahan's "twice is enough").
void orthonormalise(std::vector<std::vector<double>>& vectors) {
  for (size_t j = 0; j < vectors.size(); ++j) {
    std::vector<double>& v = vectors[j];
    for (int pass = 0; pass < 3; ++pass) {
      const double before = std::sqrt(dot(v, v));
      for (size_t i = 0; i < j; ++i) {
        const double part = dot(vectors[i], v);
        for (size_t k = 0; k < v.size(); ++k)
          v[k] -= part * vectors[i][k];
      }
      if (std::sqrt(dot(v, v)) > 0.7 * before) break;
    }
    const double length = std::sqrt(dot(v, v));
    for (double& each : v)
      each /= length;
  }
}

}  // namespace

void trunc_normal_(const Tensor& tensor, double mean, double stddev, double a, double b, SourceLocation where) {
  check_dims(tensor, "trunc_normal_", 0, kAnyDim);
  if (!(a < b && stddev > 0)) {
    throw ValueError("trunc_normal_: expected a < b and a deviation above 0, got a {}, b {}, deviation {}", a, b,
                     stddev);
  }
  // In multiples of the deviation. The lower tail, where the values of the cdf are small, is exact: mirror an interval
  // on the upper side.
  double low = (a - mean) / stddev, high = (b - mean) / stddev;
  const bool mirrored = low > 0;
  if (mirrored) std::tie(low, high) = std::pair(-high, -low);
  const double from = normal_cdf(low), to = normal_cdf(high);
  const Tensor uniform = empty(tensor.sizes(), kFloat64);
  kernels::fill_uniform(uniform, kernels::reserve_random(uniform), 0, 1);
  fill_from_host(tensor, "trunc_normal_", where, [&](double* values) {
    const double* u = uniform.data_ptr<double>();
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      const double z = normal_quantile(from + u[i] * (to - from), low, high);
      values[i] = std::clamp(mean + stddev * (mirrored ? -z : z), a, b);
    }
  });
}

void eye_(const Tensor& tensor, SourceLocation where) {
  check_dims(tensor, "eye_", 2, 2);
  fill_from_host(tensor, "eye_", where, [&](double* values) {
    for (int64_t i = 0; i < std::min(tensor.size(0), tensor.size(1)); ++i)
      values[i * tensor.size(1) + i] = 1;
  });
}

void dirac_(const Tensor& tensor, int64_t groups, SourceLocation where) {
  check_dims(tensor, "dirac_", 3, 5);
  const int64_t out = tensor.size(0), in = tensor.size(1);
  if (groups < 1 || out % groups != 0) {
    throw ShapeError("dirac_: the first dimension must be divisible by groups {}, got {}", groups, describe(tensor));
  }
  int64_t kernel = 1, middle = 0;
  for (int d = 2; d < tensor.dim(); ++d) {
    middle = middle * tensor.size(d) + tensor.size(d) / 2;
    kernel *= tensor.size(d);
  }
  fill_from_host(tensor, "dirac_", where, [&](double* values) {
    for (int64_t group = 0; group < groups; ++group) {
      for (int64_t c = 0; c < std::min(out / groups, in); ++c)
        values[((group * (out / groups) + c) * in + c) * kernel + middle] = 1;
    }
  });
}

void orthogonal_(const Tensor& tensor, double gain, SourceLocation where) {
  check_dims(tensor, "orthogonal_", 2, kAnyDim);
  if (tensor.numel() == 0) return;
  const int64_t rows = tensor.size(0), columns = tensor.numel() / rows;
  const bool wide = rows < columns;
  const int64_t count = std::min(rows, columns), length = std::max(rows, columns);
  const Tensor normal = empty({count, length}, kFloat64);
  kernels::fill_normal(normal, kernels::reserve_random(normal), 0, 1);
  std::vector<std::vector<double>> vectors;
  for (int64_t i = 0; i < count; ++i) {
    const double* row = normal.data_ptr<double>() + i * length;
    vectors.emplace_back(row, row + length);
  }
  orthonormalise(vectors);
  fill_from_host(tensor, "orthogonal_", where, [&](double* values) {
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t k = 0; k < length; ++k)
        values[wide ? i * columns + k : k * columns + i] =
            gain * vectors[static_cast<size_t>(i)][static_cast<size_t>(k)];
    }
  });
}

void sparse_(const Tensor& tensor, double sparsity, double stddev, SourceLocation where) {
  check_dims(tensor, "sparse_", 2, 2);
  if (!(sparsity >= 0 && sparsity <= 1))
    throw ValueError("sparse_: sparsity must be between 0 and 1, got {}", sparsity);
  const int64_t rows = tensor.size(0), columns = tensor.size(1);
  const auto zeroed = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(rows)));
  const Tensor normal = empty(tensor.sizes(), kFloat64);
  kernels::fill_normal(normal, kernels::reserve_random(normal), 0, stddev);
  fill_from_host(tensor, "sparse_", where, [&](double* values) {
    std::copy_n(normal.data_ptr<double>(), tensor.numel(), values);
    for (int64_t column = 0; column < columns; ++column) {
      const Tensor order = randperm(rows);
      for (int64_t i = 0; i < zeroed; ++i)
        values[order.data_ptr<int64_t>()[i] * columns + column] = 0;
    }
  });
}

}  // namespace brigade::nn::init
