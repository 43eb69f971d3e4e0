// Scans: CUDA kernels, compared with the CPU's.
#include "on_device.h"

#include <brigade/kernels/reduce.h>

namespace brigade::test::scan_test {
using namespace brigade::kernels;

namespace {

// The CPU adds float32 sequentially in double; the device adds in another order.
double scan_tolerance(DType dtype) {
  return dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 2e-5 : 2 * tolerance(dtype);
}

// Near 1, so that products stay in range for a while.
Tensor near_one(const Shape& sizes, DType dtype, uint64_t seed = 1) {
  const Tensor x = numbers(sizes, kFloat64, seed);
  if (dtype == kUInt8 || dtype == kBool) return cast(compare_scalar(x, -8, CompareOp::Greater), dtype);
  if (!is_floating_point(dtype)) return cast(unary(x, UnaryOp::Sign), dtype);
  const Tensor signs =
      binary_scalar(cast(compare_scalar(x, 0, CompareOp::Greater), kFloat64), 0.5, BinaryOp::Sub, false);
  return cast(binary(binary_scalar(signs, 1.998, BinaryOp::Mul, false), binary_scalar(x, 0.0005, BinaryOp::Mul, false),
                     BinaryOp::Add),
              dtype);
}

// Short rows, columns, middle dimensions, rows of several tiles, and long rows that are cut into pieces.
const std::vector<std::pair<Shape, int>> kRows{{{}, 0},         {{0}, 0},        {{1}, 0},       {{5, 33}, 1},
                                               {{33, 5}, 0},    {{3, 40, 4}, 1}, {{2, 2050}, 1}, {{4, 0, 3}, 1},
                                               {{2, 20000}, 1}, {{12345}, 0}};

}  // namespace

TEST_CASE("sums and products, from either end, in any dtype") {
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    for (const auto& [sizes, dim] : kRows) {
      CAPTURE(to_string(sizes));
      for (const bool reverse : {false, true}) {
        const Tensor x = numbers(sizes, dtype);
        CHECK(difference(scan(on_device(x), dim, ScanOp::Sum, reverse), scan(x, dim, ScanOp::Sum, reverse)) <=
              (is_floating_point(dtype) ? scan_tolerance(dtype) * 10 : 0));
        const Tensor factors = near_one(sizes, dtype);
        CHECK(difference(scan(on_device(factors), dim, ScanOp::Product, reverse),
                         scan(factors, dim, ScanOp::Product, reverse)) <=
              (is_floating_point(dtype) ? scan_tolerance(dtype) * 10 : 0));
      }
    }
  }
}

TEST_CASE("logarithms of sums of exponentials, and recurrences") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const auto& [sizes, dim] : kRows) {
      CAPTURE(to_string(sizes));
      const Tensor x = binary_scalar(numbers(sizes, dtype), 40, BinaryOp::Mul, false);
      const Tensor a = binary_scalar(near_one(sizes, dtype, 2), 0.9, BinaryOp::Mul, false);
      for (const bool reverse : {false, true}) {
        CHECK(difference(scan(on_device(x), dim, ScanOp::LogSumExp, reverse),
                         scan(x, dim, ScanOp::LogSumExp, reverse)) <= scan_tolerance(dtype));
        CHECK(difference(linear_recurrence(on_device(x), on_device(a), dim, reverse),
                         linear_recurrence(x, a, dim, reverse)) <= 10 * scan_tolerance(dtype));
      }
    }
  }
  const Tensor special = tensor<float>({-INFINITY, -INFINITY, 1, -INFINITY, INFINITY, INFINITY, std::nanf(""), 2});
  CHECK(difference(scan(on_device(special), 0, ScanOp::LogSumExp, false), scan(special, 0, ScanOp::LogSumExp, false)) ==
        0);
  CHECK_THROWS_AS(linear_recurrence(on_device(ones({2})), ones({2}), 0, false), DeviceError);
}

TEST_CASE("the same bits each time") {
  const Tensor x = on_device(numbers({3, 9000}, kFloat32));
  const auto first = on_cpu(scan(x, 1, ScanOp::Sum, false)).to_vector<float>();
  for (int i = 0; i < 3; ++i)
    CHECK(on_cpu(scan(x, 1, ScanOp::Sum, false)).to_vector<float>() == first);
}

}  // namespace brigade::test::scan_test
