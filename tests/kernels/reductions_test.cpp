// Products, extremes, norms, variances and logsumexp over dimensions, against plain loops in float64.
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/amax.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/logsumexp.h>
#include <brigade/kernels/norm.h>
#include <brigade/kernels/prod.h>
#include <brigade/kernels/variance.h>

#include <near.h>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

using namespace brigade;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Line = std::vector<double>;

// The elements behind each element of the result, in order.
std::vector<Line> lines_of(const Tensor& x, const Shape& dims) {
  std::vector<bool> is_reduced(static_cast<size_t>(x.dim()), dims.empty());
  for (int64_t dim : x.dim() == 0 ? Shape{} : dims)
    is_reduced[static_cast<size_t>(wrap_dim(dim, x.dim()))] = true;
  int64_t count = 1;
  for (int d = 0; d < x.dim(); ++d)
    count *= is_reduced[static_cast<size_t>(d)] ? 1 : x.sizes()[d];
  std::vector<Line> lines(static_cast<size_t>(count));
  const auto values = x.to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i);
    int64_t line = 0, stride = 1;
    for (int d = x.dim() - 1; d >= 0; --d) {
      if (!is_reduced[static_cast<size_t>(d)]) {
        line += rest % x.sizes()[d] * stride;
        stride *= x.sizes()[d];
      }
      rest /= x.sizes()[d];
    }
    lines[static_cast<size_t>(line)].push_back(values[i]);
  }
  return lines;
}

bool is_close(double found, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(found);
  return found == expected || std::abs(found - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

void check_lines(const Tensor& found, const Tensor& x, const Shape& dims, double tolerance,
                 const std::function<double(const Line&)>& plain) {
  const auto values = found.to_vector<double>();
  const auto lines = lines_of(x, dims);
  REQUIRE(values.size() == lines.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = plain(lines[i]);
    CHECK_MESSAGE(is_close(values[i], expected, tolerance), "line " << i << ": " << values[i] << ", not " << expected);
  }
}

Tensor numbers(const Shape& sizes, DType dtype, uint64_t seed = 1) {
  Generator generator(seed);
  const Tensor x = empty(sizes, kFloat64);
  kernels::fill_normal(x, generator.reserve(static_cast<uint64_t>(x.numel())), 0, 1);
  return kernels::cast(
      is_floating_point(dtype)
          ? x
          : kernels::unary(kernels::binary_scalar(x, 2.0, kernels::BinaryOp::Mul, false), kernels::UnaryOp::Abs),
      dtype);
}

struct Row {
  Shape sizes, dims;
};
const std::vector<Row> kRows{{{7}, {}},        {{0}, {}},           {{0, 3}, {1}},       {{5, 33}, {1}},
                             {{5, 33}, {0}},   {{3, 70, 5}, {1}},   {{2, 300, 3}, {-2}}, {{130, 300}, {0}},
                             {{2, 2500}, {1}}, {{4, 5, 6}, {0, 2}}, {{4, 5, 6}, {0, 1}}, {{4, 5, 6}, {2, 1}},
                             {{}, {}},         {{}, {0}},           {{3, 1}, {1}},       {{131072 * 2 + 77}, {}}};

double tolerance(DType dtype) {
  switch (dtype) {
    case kFloat64: return 1e-12;
    case kFloat32: return 1e-5;
    case kFloat16: return 2e-3;
    default: return 1.6e-2;
  }
}

const std::vector<DType> kFloating{kFloat64, kFloat32, kFloat16, kBFloat16};
const std::vector<DType> kWhole{kInt64, kInt32, kUInt8, kBool};

double variance_of(const Line& line, double correction) {
  const auto n = static_cast<double>(line.size());
  const double mean = std::accumulate(line.begin(), line.end(), 0.0) / n;
  double squares = 0;
  for (double v : line)
    squares += (v - mean) * (v - mean);
  return squares / std::max(0.0, n - correction);
}

double norm_of(const Line& line, double p) {
  double sum = 0, largest = 0, smallest = kInfinity;
  for (double v : line) {
    sum += p == 0 ? (v != 0 ? 1 : 0) : std::pow(std::abs(v), p);
    largest = std::max(largest, std::abs(v));
    smallest = std::min(smallest, std::abs(v));
  }
  if (std::isinf(p)) return p > 0 ? largest : smallest;
  return p == 0 ? sum : std::pow(sum, 1 / p);
}

double logsumexp_of(const Line& line) {
  double largest = -kInfinity, sum = 0;
  for (double v : line)
    largest = std::max(largest, v);
  if (std::isinf(largest)) return largest;
  for (double v : line)
    sum += std::exp(v - largest);
  return largest + std::log(sum);
}

}  // namespace

TEST_CASE("variances, norms and logsumexp over rows, columns, middles and scattered dimensions") {
  for (const DType dtype : kFloating) {
    for (const Row& row : kRows) {
      CAPTURE(name(dtype));
      CAPTURE(to_string(row.sizes));
      CAPTURE(to_string(row.dims));
      const Tensor x = numbers(row.sizes, dtype);
      const double bound = tolerance(dtype);
      for (const double correction : {0.0, 1.0, 2.5}) {
        const kernels::Variance found = kernels::variance(x, row.dims, correction, false, false);
        check_lines(found.variance, x, row.dims, bound, [&](const Line& l) { return variance_of(l, correction); });
        check_lines(found.mean, x, row.dims, bound, [](const Line& l) {
          return std::accumulate(l.begin(), l.end(), 0.0) / static_cast<double>(l.size());
        });
      }
      check_lines(kernels::logsumexp(x, row.dims, false), x, row.dims, bound, logsumexp_of);
      for (const double p : {0.0, 1.0, 2.0, 3.0, 0.5, -2.0, kInfinity, -kInfinity}) {
        CAPTURE(p);
        const bool is_empty = x.numel() == 0 && !lines_of(x, row.dims).empty();
        if (is_empty && (p < 0 || std::isinf(p))) {
          CHECK_THROWS_WITH_AS(kernels::norm(x, p, row.dims, false), doctest::Contains("of no elements"), ShapeError);
          continue;
        }
        if (dtype == kFloat16 && x.numel() > (p == 0.5 ? 1000 : 60000)) continue;  // beyond its range
        check_lines(kernels::norm(x, p, row.dims, true), x, row.dims, p < 0 ? 10 * bound : bound,
                    [&](const Line& l) { return norm_of(l, p); });
      }
    }
  }
}

TEST_CASE("the largest and the smallest, and products, of every dtype") {
  std::vector<DType> all = kFloating;
  all.insert(all.end(), kWhole.begin(), kWhole.end());
  for (const DType dtype : all) {
    for (const Row& row : kRows) {
      CAPTURE(name(dtype));
      CAPTURE(to_string(row.sizes));
      CAPTURE(to_string(row.dims));
      const Tensor x = numbers(row.sizes, dtype, 3);
      if (x.numel() < 10000) {
        const Tensor found = kernels::prod(x, row.dims, false);
        CHECK(found.dtype() == (is_floating_point(dtype) ? dtype : kInt64));
        check_lines(found, x, row.dims, is_floating_point(dtype) ? 10 * tolerance(dtype) : 0,
                    [](const Line& l) { return std::accumulate(l.begin(), l.end(), 1.0, std::multiplies<>()); });
      }
      if (x.numel() == 0 && !lines_of(x, row.dims).empty()) {
        CHECK_THROWS_WITH_AS(kernels::amax(x, row.dims, false), doctest::Contains("at least one element"), ShapeError);
        continue;
      }
      const Tensor largest = kernels::amax(x, row.dims, false);
      CHECK(largest.dtype() == dtype);
      check_lines(largest, x, row.dims, 0, [](const Line& l) { return *std::max_element(l.begin(), l.end()); });
      check_lines(kernels::amin(x, row.dims, true), x, row.dims, 0,
                  [](const Line& l) { return *std::min_element(l.begin(), l.end()); });
    }
  }
  // Beyond what a double holds.
  const Tensor big = tensor<int64_t>({(int64_t{1} << 62) + 1, int64_t{1} << 62});
  CHECK(kernels::amax(big, {}, false).to_vector<int64_t>()[0] == (int64_t{1} << 62) + 1);
}

TEST_CASE("reductions of views are those of their copies") {
  const Tensor x = numbers({6, 5, 8}, kFloat32);
  for (const Tensor& seen :
       {view::transpose(x, 0, 2), view::slice(x, 1, 1, 5, 2), view::expand(view::slice(x, 1, 2, 3), {6, 4, 8})}) {
    const Tensor copy = kernels::clone(seen);
    for (const Shape& dims : {Shape{0}, Shape{1}, Shape{2}, Shape{0, 2}}) {
      const auto same = [&](auto reduce) {
        CHECK(reduce(seen).template to_vector<float>() == reduce(copy).template to_vector<float>());
      };
      same([&](const Tensor& t) { return kernels::variance(t, dims, 1, false, false).variance; });
      same([&](const Tensor& t) { return kernels::norm(t, 3, dims, false); });
      same([&](const Tensor& t) { return kernels::logsumexp(t, dims, false); });
      same([&](const Tensor& t) { return kernels::amin(t, dims, false); });
      same([&](const Tensor& t) { return kernels::prod(t, dims, false); });
    }
  }
}

TEST_CASE("NaN and infinities in reductions") {
  for (const int64_t inner : {1, 3}) {
    for (const int64_t length : {3, 200}) {
      CAPTURE(inner);
      CAPTURE(length);
      const auto with = [&](double first, double last) {
        const Tensor x = numbers({length, inner}, kFloat32);
        for (int64_t j = 0; j < inner; ++j) {
          x.data_ptr<float>()[j] = static_cast<float>(first);
          x.data_ptr<float>()[(length - 1) * inner + j] = static_cast<float>(last);
        }
        return inner == 1 ? view::squeeze(x, 1) : x;
      };
      const auto first = [](const Tensor& x) { return x.to_vector<double>()[0]; };
      for (const auto& x : {with(kNaN, 0), with(0, kNaN), with(kNaN, kInfinity), with(kInfinity, kNaN)}) {
        CHECK(std::isnan(first(kernels::amax(x, {0}, false))));
        CHECK(std::isnan(first(kernels::amin(x, {0}, false))));
        CHECK(std::isnan(first(kernels::norm(x, kInfinity, {0}, false))));
        CHECK(std::isnan(first(kernels::norm(x, -kInfinity, {0}, false))));
        CHECK(std::isnan(first(kernels::norm(x, 2, {0}, false))));
        CHECK(std::isnan(first(kernels::logsumexp(x, {0}, false))));
        CHECK(std::isnan(first(kernels::variance(x, {0}, 1, false, false).variance)));
      }
      CHECK(first(kernels::logsumexp(with(kInfinity, 0), {0}, false)) == kInfinity);
      CHECK(first(kernels::logsumexp(with(kInfinity, -kInfinity), {0}, false)) == kInfinity);
      CHECK(std::isfinite(first(kernels::logsumexp(with(0, -kInfinity), {0}, false))));
      CHECK(first(kernels::logsumexp(kernels::binary_scalar(with(0, 0), -kInfinity, kernels::BinaryOp::Sub, true), {0},
                                     false)) == -kInfinity);
      CHECK(std::isnan(first(kernels::variance(with(kInfinity, 0), {0}, 1, false, false).variance)));
    }
  }
  CHECK(kernels::logsumexp(zeros({2, 0}), {1}, false).to_vector<double>() ==
        std::vector<double>{-kInfinity, -kInfinity});
  CHECK(kernels::prod(zeros({2, 0}), {1}, false).to_vector<double>() == std::vector<double>{1, 1});
}

TEST_CASE("a variance is right where the mean is a million times the spread") {
  for (const auto& [sizes, dims] :
       std::vector<std::pair<Shape, Shape>>{{{20000}, {}}, {{500, 7}, {0}}, {{3, 500}, {1}}}) {
    CAPTURE(to_string(sizes));
    const Tensor x =
        kernels::cast(kernels::binary_scalar(numbers(sizes, kFloat64), 1e6, kernels::BinaryOp::Add, false), kFloat32);
    check_lines(kernels::variance(x, dims, 1, false, false).variance, x, dims, 1e-5,
                [](const Line& l) { return variance_of(l, 1); });
    check_lines(kernels::variance(full(sizes, 0.1F), dims, 1, false, false).variance, x, dims, 0,
                [](const Line&) { return 0.0; });
  }
}

TEST_CASE("too few elements for a variance") {
  const auto variance = [](const Tensor& x, double correction) {
    return kernels::variance(x, {}, correction, false, false).variance.to_vector<double>()[0];
  };
  CHECK(std::isnan(variance(ones({1}), 1)));
  CHECK(std::isnan(variance(ones({0}), 0)));
  CHECK(variance(tensor<float>({1, 3}), 2) == kInfinity);
  CHECK(variance(ones({1}), 0) == 0);
  CHECK(std::isnan(kernels::variance(ones({0, 2}), {0}, 0, false, false).mean.to_vector<double>()[1]));
}

TEST_CASE("the gradient of a variance is the distance from the mean times a factor") {
  for (const DType dtype : kFloating) {
    for (const Row& row : kRows) {
      CAPTURE(name(dtype));
      CAPTURE(to_string(row.sizes));
      CAPTURE(to_string(row.dims));
      const Tensor x = numbers(row.sizes, dtype);
      const Tensor mean = kernels::variance(x, row.dims, 1, true, false).mean;
      const Tensor factor = numbers(mean.sizes(), dtype, 5);
      const Tensor found = kernels::variance_backward(factor, x, mean, row.dims);
      CHECK(found.sizes() == x.sizes());
      const auto exact = [](const Tensor& t) { return kernels::cast(t, kFloat64); };
      const auto expected = kernels::binary(kernels::binary(exact(x), exact(mean), kernels::BinaryOp::Sub),
                                            exact(factor), kernels::BinaryOp::Mul)
                                .to_vector<double>();
      const auto values = found.to_vector<double>();
      double worst = 0;
      for (size_t i = 0; i < values.size(); ++i)
        worst = test::worse(worst, std::abs(values[i] - expected[i]) / std::max(1.0, std::abs(expected[i])));
      CHECK(worst <= tolerance(dtype));
    }
  }
  CHECK_THROWS_AS(kernels::variance_backward(ones({3}), ones({2, 3}), ones({2}), {1}), ShapeError);
}

TEST_CASE("errors of reductions say what was expected") {
  CHECK_THROWS_AS(kernels::variance(ones({2}, kInt64), {}, 1, false, false), DTypeError);
  CHECK_THROWS_AS(kernels::norm(ones({2}, kInt32), 2, {}, false), DTypeError);
  CHECK_THROWS_AS(kernels::logsumexp(ones({2}, kBool), {}, false), DTypeError);
  CHECK_THROWS_AS(kernels::prod(ones({2}), {1}, false), IndexError);
  CHECK_THROWS_AS(kernels::amax(ones({2, 2}), {0, -2}, false), ShapeError);
}
