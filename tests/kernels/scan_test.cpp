// Scans, compared with plain loops in double.
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/reduce.h>

#include <kernels/values.h>
#include <near.h>

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::test::scan_test {
using test::check_near;
using namespace brigade::kernels;

namespace {

double precision(DType dtype) {
  return dtype == kFloat64    ? 1e-12
         : dtype == kFloat32  ? 1e-6
         : dtype == kFloat16  ? 1e-3
         : dtype == kBFloat16 ? 8e-3
                              : 0;
}

Tensor near_one(const Shape& sizes, DType dtype, int64_t step = 5) {
  std::vector<double> values;
  for (int64_t i = 0; i < sizes.numel(); ++i) {
    const double value = static_cast<double>(i * step % 7 - 3) / 8 + (i % 2 == 0 ? 1 : -1);
    values.push_back(is_floating_point(dtype) ? value : std::round(value));
  }
  const Tensor x = tensor(values, sizes);
  return cast(dtype == kUInt8 || dtype == kBool ? unary(x, UnaryOp::Abs) : x, dtype);
}

// step(before, i) returns the value at flat position i; `before` is the value of the preceding element of the slice.
template <class Step>
std::vector<double> running(const Shape& sizes, int dim, bool reverse, double start, Step step) {
  std::vector<double> result(static_cast<size_t>(sizes.numel()));
  int64_t inner = 1;
  for (int d = dim + 1; d < sizes.size(); ++d)
    inner *= sizes[d];
  const int64_t length = sizes.empty() ? 1 : sizes[dim];
  for (int64_t slice = 0; length > 0 && slice < sizes.numel() / length; ++slice) {
    double state = start;
    for (int64_t j = 0; j < length; ++j) {
      const int64_t i = (slice / inner * length + (reverse ? length - 1 - j : j)) * inner + slice % inner;
      state = step(state, static_cast<size_t>(i));
      result[static_cast<size_t>(i)] = state;
    }
  }
  return result;
}

const std::vector<std::pair<Shape, int>> kRows{{{}, 0},        {{0}, 0},      {{9}, 0},        {{3, 0}, 0},
                                               {{4, 30}, 1},   {{30, 4}, 0},  {{3, 11, 2}, 1}, {{2, 12, 150}, 1},
                                               {{2, 0, 3}, 1}, {{1, 5000}, 1}};

}  // namespace

TEST_CASE("sums and products of any dtype, from either end") {
  for (const DType dtype : test::kEveryDType) {
    CAPTURE(name(dtype));
    for (const auto& [sizes, dim] : kRows) {
      CAPTURE(to_string(sizes));
      const Tensor x = near_one(sizes, dtype);
      const auto values = x.to_vector<double>();
      for (const bool reverse : {false, true}) {
        const Tensor sums = scan(x, dim, ScanOp::Sum, reverse);
        CHECK(sums.dtype() == (is_floating_point(dtype) ? dtype : kInt64));
        CHECK(sums.sizes() == sizes);
        check_near(sums, running(sizes, dim, reverse, 0, [&](double s, size_t i) { return s + values[i]; }),
                   precision(dtype));
        if (sizes.numel() == 5000) continue;  // too small to distinguish from 0
        check_near(scan(x, dim, ScanOp::Product, reverse),
                   running(sizes, dim, reverse, 1, [&](double s, size_t i) { return s * values[i]; }),
                   precision(dtype));
      }
    }
  }
  const Tensor turned = view::transpose(near_one({5, 7}, kFloat32), 0, 1);
  CHECK(scan(turned, 1, ScanOp::Sum, false).to_vector<float>() ==
        scan(clone(turned), 1, ScanOp::Sum, false).to_vector<float>());
}

TEST_CASE("several rows at a time, in pieces: each has the bits of a plain loop") {
  for (const DType dtype : {kFloat64, kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    for (const int64_t rows : {1, 3, 4, 9}) {
      for (const int64_t length : {1, 127, 128, 129, 300}) {
        for (const bool reverse : {false, true}) {
          CAPTURE(rows);
          CAPTURE(length);
          CAPTURE(reverse);
          const Tensor x = test::random({rows, length}, 1, dtype), a = test::random({rows, length}, 2, dtype);
          const auto plain = [&](auto step) {
            return running(x.sizes(), 1, reverse, 0, [&](double before, size_t i) {
              const double exact = step(before, i);
              return is_half(dtype) ? static_cast<double>(static_cast<float>(exact)) : exact;
            });
          };
          const auto in = x.to_vector<double>(), factors = a.to_vector<double>();
          const auto rounded = [&](const std::vector<double>& values) {
            return cast(tensor(values, x.sizes()), dtype).to_vector<double>();
          };
          CHECK(scan(x, 1, ScanOp::Sum, reverse).to_vector<double>() ==
                rounded(plain([&](double before, size_t i) { return before + in[i]; })));
          if (is_half(dtype)) continue;  // would be rounded to float32 twice
          CHECK(linear_recurrence(x, a, 1, reverse).to_vector<double>() ==
                rounded(plain([&](double before, size_t i) { return in[i] + factors[i] * before; })));
        }
      }
    }
  }
}

TEST_CASE("long sums in float32 do not drift") {
  const Tensor sums = scan(full({1 << 20}, 0.1, kFloat32), 0, ScanOp::Sum, false);
  CHECK(sums.to_vector<double>().back() == doctest::Approx((1 << 20) * 0.1).epsilon(1e-6));
}

TEST_CASE("logarithms of running sums of exponentials, far beyond what exp can hold") {
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    for (const auto& [sizes, dim] : kRows) {
      CAPTURE(to_string(sizes));
      const Tensor x = binary_scalar(near_one(sizes, dtype), 500, BinaryOp::Mul, false);
      const auto values = x.to_vector<double>();
      for (const bool reverse : {false, true}) {
        const auto join = [&](double s, size_t i) {
          const double large = std::max(s, values[i]);
          return large + std::log(std::exp(s - large) + std::exp(values[i] - large));
        };
        check_near(scan(x, dim, ScanOp::LogSumExp, reverse), running(sizes, dim, reverse, -INFINITY, join),
                   precision(dtype));
      }
    }
  }
  const Tensor special =
      tensor<double>({-INFINITY, -INFINITY, 1, -INFINITY, INFINITY, INFINITY, std::nan(""), -INFINITY});
  const auto found = scan(special, 0, ScanOp::LogSumExp, false).to_vector<double>();
  CHECK(found[1] == -INFINITY);
  CHECK(found[3] == 1);
  CHECK(found[5] == INFINITY);
  CHECK(std::isnan(found[6]));
  CHECK(std::isnan(found[7]));
  CHECK_THROWS_WITH_AS(scan(ones({2}, kInt64), 0, ScanOp::LogSumExp, false), doctest::Contains("logcumsumexp"),
                       DTypeError);
}

TEST_CASE("linear recurrences") {
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    for (const auto& [sizes, dim] : kRows) {
      CAPTURE(to_string(sizes));
      const Tensor b = near_one(sizes, dtype);
      const Tensor a = binary_scalar(near_one(sizes, dtype, 3), 0.5, BinaryOp::Mul, false);
      const auto added = b.to_vector<double>();
      const auto factors = a.to_vector<double>();
      for (const bool reverse : {false, true}) {
        check_near(linear_recurrence(b, a, dim, reverse),
                   running(sizes, dim, reverse, 0, [&](double s, size_t i) { return added[i] + factors[i] * s; }),
                   precision(dtype));
      }
    }
  }
  CHECK_THROWS_AS(linear_recurrence(ones({2}), ones({3}), 0, false), ShapeError);
  CHECK_THROWS_AS(linear_recurrence(ones({2}), ones({2}, kFloat64), 0, false), ShapeError);
  CHECK_THROWS_AS(linear_recurrence(ones({2}, kInt64), ones({2}, kInt64), 0, false), DTypeError);
}

}  // namespace brigade::test::scan_test
