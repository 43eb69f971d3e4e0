// Products, extremes, norms, variances, and logsumexp over dimensions: CUDA kernels, compared with the CPU's.
#include "on_device.h"

#include <brigade/kernels/reduce.h>

#include <limits>

namespace brigade::test::reductions_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Row {
  Shape sizes, dims;
};
// Short and long rows, columns in one and in several pieces, a row of several pieces, nonadjacent dimensions.
const std::vector<Row> kRows{
    {{7}, {}},          {{5, 33}, {1}},   {{5, 33}, {0}},      {{9, 513}, {1}}, {{0, 3}, {1}}, {{3, 20, 35}, {1}},
    {{2, 700, 3}, {1}}, {{300, 65}, {0}}, {{4, 5, 6}, {0, 2}}, {{50001}, {}},   {{}, {}}};

double bound(DType dtype, const Tensor& x) {
  const double unit = dtype == kFloat64 ? 1e-15 : 1e-6;
  return 8 * unit * std::sqrt(static_cast<double>(x.numel()) + 1) + 2 * (is_half(dtype) ? tolerance(dtype) : 0);
}

}  // namespace

TEST_CASE("norms, variances and logsumexp") {
  for (const DType dtype : kFloatingDTypes) {
    for (const Row& row : kRows) {
      CAPTURE(name(dtype));
      CAPTURE(to_string(row.sizes));
      CAPTURE(to_string(row.dims));
      const Tensor x = numbers(row.sizes, dtype);
      const Tensor there = on_device(x);
      const double most = bound(dtype, x);
      for (const double p : {0.0, 1.0, 2.0, 3.0, kInfinity, -kInfinity})
        CHECK(difference(kernels::norm(there, p, row.dims, false), kernels::norm(x, p, row.dims, false)) <= most);
      CHECK(difference(kernels::logsumexp(there, row.dims, true), kernels::logsumexp(x, row.dims, true)) <= most);
      const kernels::Variance found = kernels::variance(there, row.dims, 0.5, false, false);
      const kernels::Variance expected = kernels::variance(x, row.dims, 0.5, false, false);
      CHECK(difference(found.variance, expected.variance) <= most);
      CHECK(difference(found.mean, expected.mean) <= most);
      const Tensor factor = numbers(expected.mean.sizes(), dtype, 5);
      CHECK(difference(kernels::variance_backward(on_device(factor), there, on_device(expected.mean), row.dims),
                       kernels::variance_backward(factor, x, expected.mean, row.dims)) <= tolerance(dtype));
    }
  }
  CHECK_THROWS_AS(kernels::variance(on_device(ones({2}, kInt64)), {}, 1, false, false), DTypeError);
  CHECK_THROWS_AS(kernels::norm(on_device(ones({2, 0})), -1, {1}, false), ShapeError);
}

TEST_CASE("the largest and the smallest, and products, of every dtype") {
  for (const DType dtype : kAllDTypes) {
    for (const Row& row : kRows) {
      CAPTURE(name(dtype));
      CAPTURE(to_string(row.sizes));
      CAPTURE(to_string(row.dims));
      const Tensor x = numbers(row.sizes, dtype);
      const Tensor there = on_device(x);
      CHECK(difference(kernels::amax(there, row.dims, false), kernels::amax(x, row.dims, false)) == 0);
      CHECK(difference(kernels::amin(there, row.dims, true), kernels::amin(x, row.dims, true)) == 0);
      // Near 1, so that a product of many factors stays in range; int64 overflow wraps around in any order.
      const Tensor factors =
          is_floating_point(dtype)
              ? kernels::cast(kernels::binary_scalar(kernels::binary_scalar(kernels::cast(x, kFloat64), 1e-3,
                                                                            kernels::BinaryOp::Mul, false),
                                                     1.0, kernels::BinaryOp::Add, false),
                              dtype)
              : x;
      const double most = is_floating_point(dtype) ? bound(dtype, x) : 0;
      CHECK(difference(kernels::prod(on_device(factors), row.dims, false), kernels::prod(factors, row.dims, false)) <=
            most);
    }
  }
}

TEST_CASE("reductions of rows that start where no vector may, the same each time") {
  for (const DType dtype : kFloatingDTypes) {
    for (const int64_t length : {3, 37, 519, 40001}) {
      CAPTURE(name(dtype));
      CAPTURE(length);
      for (const int64_t start : {1, 3}) {
        const Tensor x = numbers({length < 1000 ? 3 : 1, length}, dtype);
        const Tensor there = shifted(on_device(x), start);
        CHECK(difference(kernels::norm(there, 2, {1}, false), kernels::norm(x, 2, {1}, false)) <= bound(dtype, x));
        CHECK(difference(kernels::amax(there, {1}, false), kernels::amax(x, {1}, false)) == 0);
        const kernels::Variance found = kernels::variance(there, {1}, 1, false, false);
        const kernels::Variance expected = kernels::variance(x, {1}, 1, false, false);
        CHECK(difference(found.variance, expected.variance) <= bound(dtype, x));
        CHECK(difference(kernels::variance_backward(on_device(expected.mean), there, on_device(expected.mean), {1}),
                         kernels::variance_backward(expected.mean, x, expected.mean, {1})) <= tolerance(dtype));
        const auto first = on_cpu(found.variance).to_vector<double>();
        for (int i = 0; i < 3; ++i)
          CHECK(on_cpu(kernels::variance(there, {1}, 1, false, false).variance).to_vector<double>() == first);
      }
    }
  }
}

TEST_CASE("NaN and infinities in reductions, and a mean far from 0") {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr auto kLarge = std::numeric_limits<float>::infinity();
  for (const int64_t inner : {1, 40}) {
    CAPTURE(inner);
    for (const auto& [a, b] : std::vector<std::pair<float, float>>{{kNaN, 0},
                                                                   {0, kNaN},
                                                                   {kNaN, kLarge},
                                                                   {kLarge, kNaN},
                                                                   {kLarge, 0},
                                                                   {kLarge, kLarge},
                                                                   {0, -kLarge},
                                                                   {-kLarge, -kLarge}}) {
      CAPTURE(a);
      CAPTURE(b);
      const Tensor x = numbers({200, inner}, kFloat32);
      for (int64_t j = 0; j < inner; ++j) {
        x.data_ptr<float>()[77 * inner + j] = a;
        x.data_ptr<float>()[151 * inner + j] = b;
      }
      const Tensor there = on_device(x);
      CHECK(difference(kernels::amax(there, {0}, false), kernels::amax(x, {0}, false)) == 0);
      CHECK(difference(kernels::amin(there, {0}, false), kernels::amin(x, {0}, false)) == 0);
      CHECK(difference(kernels::norm(there, kInfinity, {0}, false), kernels::norm(x, kInfinity, {0}, false)) == 0);
      CHECK(difference(kernels::logsumexp(there, {0}, false), kernels::logsumexp(x, {0}, false)) <= 1e-5);
    }
    const Tensor far = kernels::binary_scalar(numbers({2000, inner}, kFloat32), 1e5, kernels::BinaryOp::Add, false);
    CHECK(difference(kernels::variance(on_device(far), {0}, 1, false, false).variance,
                     kernels::variance(far, {0}, 1, false, false).variance) <= 1e-3);
  }
  const Tensor none = full({3, 40}, -kLarge);
  CHECK(difference(kernels::logsumexp(on_device(none), {1}, false), kernels::logsumexp(none, {1}, false)) == 0);
}

}  // namespace brigade::test::reductions_test
