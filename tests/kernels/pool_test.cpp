// Pooling, compared with plain loops: windows that overlap, leave gaps, exceed the edge, are dilated, divide the input.
#include <brigade/core/factory.h>
#include <brigade/core/random.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/pool.h>

#include <kernels/values.h>
#include <near.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace brigade::test::pool_test {
using namespace brigade::kernels;
using test::random;

namespace {

struct Row {
  Shape x;
  Pool2dParams params;
};
const std::vector<Row> kSliding{
    {{2, 3, 8, 8}, {}},
    {{3, 7, 9}, {{3, 3}, {2, 2}, {1, 1}}},
    {{2, 2, 7, 9}, {{3, 2}, {2, 3}, {1, 0}, true}},
    {{1, 2, 10, 6}, {{2, 3}, {3, 5}, {1, 1}, true, false}},
    {{1, 1, 6, 7}, {{3, 4}, {1, 1}, {1, 2}, false, false}},
    {{1, 1, 5, 5}, {{5, 5}, {1, 1}, {2, 2}}},
    {{2, 1, 1, 40}, {{1, 3}, {1, 2}, {0, 1}, true}},
    {{0, 3, 4, 4}, {}},
    {{4, 1, 1, 1}, {{1, 1}}},
    // 2x2 windows: rows of one vector, of several with and without a tail, with a left-over column and row.
    {{3, 4, 16}, {}},
    {{2, 6, 24}, {}},
    {{2, 5, 35}, {}},
    {{1, 2, 64}, {}},
    // Parameters that differ slightly from 2x2 windows without overlap.
    {{2, 5, 35}, {{2, 2}, {2, 2}, {0, 0}, true}},
    {{2, 4, 34}, {{2, 2}, {2, 2}, {1, 1}}},
    {{2, 4, 32}, {{1, 2}, {2, 2}}},
};
const std::vector<Row> kAdaptive{{{2, 3, 7, 8}, {.output_size = {3, 5}}},   {{2, 9, 4}, {.output_size = {1, 1}}},
                                 {{2, 2, 13, 11}, {.output_size = {1, 1}}}, {{1, 3, 6, 36}, {.output_size = {3, 9}}},
                                 {{1, 2, 3, 2}, {.output_size = {5, 3}}},   {{1, 2, 6, 6}, {.output_size = {3, 6}}}};
const std::vector<Row> kDilated{
    {{2, 2, 9, 9}, {.kernel_size = {3, 2}, .stride = {1, 2}, .padding = {1, 1}, .dilation = {2, 3}}},
    {{1, 1, 7, 12}, {.kernel_size = {2, 3}, .stride = {3, 1}, .ceil_mode = true, .dilation = {4, 2}}},
    {{1, 1, 4, 9}, {.kernel_size = {2, 5}, .stride = {1, 1}, .padding = {1, 2}, .dilation = {1, 2}}}};

// The positions of a window in a plane, row by row, and the divisor of its sum.
struct Window {
  std::vector<size_t> places;
  double divisor;
};

// All windows in order, straight from the definition.
std::vector<Window> windows_of(int64_t height, int64_t width, int64_t out_height, int64_t out_width,
                               const Pool2dParams& p) {
  struct Span {
    std::vector<int64_t> places;
    int64_t counted;
  };
  const auto span = [&](int64_t o, size_t d, int64_t in, int64_t out) {
    Span result{{}, 0};
    if (p.output_size[d] > 0) {
      for (int64_t i = 0; i < in; ++i) {
        if (i >= std::floor(static_cast<double>(o * in) / static_cast<double>(out)) &&
            i < std::ceil(static_cast<double>((o + 1) * in) / static_cast<double>(out)))
          result.places.push_back(i);
      }
      result.counted = static_cast<int64_t>(result.places.size());
      return result;
    }
    const int64_t stride = p.stride[0] == 0 && p.stride[1] == 0 ? p.kernel_size[d] : p.stride[d];
    for (int64_t j = 0; j < p.kernel_size[d]; ++j) {
      const int64_t i = o * stride - p.padding[d] + j * p.dilation[d];
      if (i >= 0 && i < in) result.places.push_back(i);
      if (p.count_include_pad ? i < in + p.padding[d] : i >= 0 && i < in) ++result.counted;
    }
    return result;
  };
  std::vector<Window> result;
  for (int64_t oh = 0; oh < out_height; ++oh) {
    for (int64_t ow = 0; ow < out_width; ++ow) {
      const Span down = span(oh, 0, height, out_height);
      const Span along = span(ow, 1, width, out_width);
      Window window{{}, static_cast<double>(p.divisor_override.value_or(down.counted * along.counted))};
      for (const int64_t h : down.places) {
        for (const int64_t w : along.places)
          window.places.push_back(static_cast<size_t>(h * width + w));
      }
      result.push_back(window);
    }
  }
  return result;
}

double tolerance(DType dtype) {
  return dtype == kFloat64 ? 1e-14 : dtype == kFloat32 ? 2e-6 : dtype == kFloat16 ? 2e-3 : 1.6e-2;
}

// Calls visit(plane, output, window) for all outputs of all planes.
template <class Visit>
void for_each_window(const Shape& x, const Shape& y, const Pool2dParams& p, Visit&& visit) {
  const int dims = x.size();
  const auto windows = windows_of(x[dims - 2], x[dims - 1], y[dims - 2], y[dims - 1], p);
  const size_t planes = y.numel() > 0 ? static_cast<size_t>(y.numel()) / windows.size() : 0;
  for (size_t plane = 0; plane < planes; ++plane) {
    for (size_t o = 0; o < windows.size(); ++o)
      visit(plane * static_cast<size_t>(x[dims - 2] * x[dims - 1]), plane * windows.size() + o, windows[o]);
  }
}

void check_max(const Row& row, DType dtype) {
  CAPTURE(to_string(row.x));
  CAPTURE(name(dtype));
  const Tensor x = random(row.x, 1, dtype);
  const MaxPool y = max_pool2d(x, row.params);
  CHECK(y.values.dtype() == dtype);
  const auto in = x.to_vector<double>();
  const auto values = y.values.to_vector<double>();
  const auto indices = y.indices.to_vector<int64_t>();
  const Tensor grad = random(y.values.sizes(), 2, dtype);
  const auto slopes = grad.to_vector<double>();
  std::vector<double> expected(in.size());
  int wrong = 0;
  for_each_window(row.x, y.values.sizes(), row.params, [&](size_t plane, size_t o, const Window& window) {
    size_t best = window.places.at(0);
    for (const size_t place : window.places) {
      if (in[plane + place] > in[plane + best]) best = place;
    }
    wrong += values[o] != in[plane + best] || indices[o] != static_cast<int64_t>(best) ? 1 : 0;
    expected[plane + best] += slopes[o];
  });
  CHECK(wrong == 0);
  const auto found = max_pool2d_backward(grad, y.indices, row.x, row.params).to_vector<double>();
  for (size_t i = 0; i < expected.size(); ++i)
    CHECK(std::abs(found[i] - expected[i]) <= tolerance(dtype) * (1 + std::abs(expected[i])));
  CHECK(max_pool2d_gather(x, y.indices).to_vector<double>() == values);
}

void check_average(const Row& row, DType dtype) {
  CAPTURE(to_string(row.x));
  CAPTURE(name(dtype));
  const Tensor x = random(row.x, 1, dtype);
  const Tensor y = avg_pool2d(x, row.params);
  CHECK(y.dtype() == dtype);
  const auto in = x.to_vector<double>();
  const auto values = y.to_vector<double>();
  const Tensor grad = random(y.sizes(), 2, dtype);
  const auto slopes = grad.to_vector<double>();
  std::vector<double> expected(in.size());
  double worst = 0;
  for_each_window(row.x, y.sizes(), row.params, [&](size_t plane, size_t o, const Window& window) {
    double sum = 0;
    for (const size_t place : window.places) {
      sum += in[plane + place];
      expected[plane + place] += slopes[o] / window.divisor;
    }
    worst = test::worse(worst, std::abs(values[o] - sum / window.divisor));
  });
  CHECK(worst <= tolerance(dtype) * 4);
  const auto found = avg_pool2d_backward(grad, row.x, row.params).to_vector<double>();
  for (size_t i = 0; i < expected.size(); ++i)
    CHECK(std::abs(found[i] - expected[i]) <= 4 * tolerance(dtype) * (1 + std::abs(expected[i])));
}

}  // namespace

TEST_CASE("the largest of each window, its place, its gradient and the gradient's gradient") {
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    for (const auto& rows : {kSliding, kAdaptive, kDilated}) {
      for (const Row& row : rows)
        check_max(row, dtype);
    }
  }
}

TEST_CASE("the average of each window and its gradient; a divisor of one's own") {
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    for (const auto& rows : {kSliding, kAdaptive}) {
      for (Row row : rows) {
        check_average(row, dtype);
        row.params.divisor_override = -5;
        check_average(row, dtype);
      }
    }
  }
}

TEST_CASE("of equal elements the first wins, of NaNs the last, whatever the road") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor x = tensor(std::vector<double>{2, 2, nan, 1, 2, nan, -inf, -inf, -inf, -inf, 3, 3}, {1, 3, 4});
  for (const DType dtype : {kFloat64, kFloat32, kBFloat16}) {
    const Tensor same = cast(x, dtype);
    const auto places = [&](const Pool2dParams& p) { return max_pool2d(same, p).indices.to_vector<int64_t>(); };
    CHECK(places({{2, 2}, {1, 1}}) == std::vector<int64_t>{5, 5, 2, 5, 5, 10});
    CHECK(places({{1, 2}, {2, 2}}) == std::vector<int64_t>{0, 2, 8, 10});
    CHECK(places({.output_size = {1, 1}}) == std::vector<int64_t>{5});
    CHECK(places({.output_size = {3, 2}}) == std::vector<int64_t>{0, 2, 5, 6, 8, 10});
    CHECK(places({.kernel_size = {2, 2}, .stride = {1, 1}, .dilation = {2, 3}}) == std::vector<int64_t>{11});
    // Rows long enough for vectors.
    const auto pairs = [&](double value) {
      return max_pool2d(full({1, 1, 2 * 9}, value, dtype), {{1, 2}, {1, 2}}).indices.to_vector<int64_t>();
    };
    CHECK(pairs(2) == std::vector<int64_t>{0, 2, 4, 6, 8, 10, 12, 14, 16});
    CHECK(pairs(-inf) == std::vector<int64_t>{0, 2, 4, 6, 8, 10, 12, 14, 16});
    CHECK(pairs(nan) == std::vector<int64_t>{1, 3, 5, 7, 9, 11, 13, 15, 17});
  }
}

TEST_CASE("windows of two by two of float32 choose the same places as those of float64, of equals and NaNs too") {
  const double choices[] = {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity(), -1, 2,
                            2};
  for (const int64_t width : {16, 18, 24, 31, 32, 50}) {
    CAPTURE(width);
    RandomGenerator generator(static_cast<uint64_t>(width));
    const Tensor which = randint(0, 5, {6, 10, width}, {kInt64}, &generator);
    std::vector<double> values;
    for (const int64_t choice : which.to_vector<int64_t>())
      values.push_back(choices[choice]);
    const Tensor x = tensor(values, {6, 10, width});
    const MaxPool expected = max_pool2d(x, {}), found = max_pool2d(cast(x, kFloat32), {});
    CHECK(found.indices.to_vector<int64_t>() == expected.indices.to_vector<int64_t>());
    const std::vector<double> largest = cast(found.values, kFloat64).to_vector<double>();
    int64_t wrong = 0;
    for (size_t i = 0; i < largest.size(); ++i)
      wrong += !test::is_close(largest[i], expected.values.to_vector<double>()[i], 0);
    CHECK(wrong == 0);
  }
}

TEST_CASE("strided planes, gradients and indices are pooled as dense ones") {
  const Tensor x = random({5, 6, 2, 3}, 1, kFloat32);
  const Tensor turned = view::permute(x, {2, 3, 0, 1});
  const Pool2dParams params{{2, 3}, {1, 1}, {1, 1}};
  const MaxPool y = max_pool2d(turned, params);
  CHECK(y.values.to_vector<float>() == max_pool2d(clone(turned), params).values.to_vector<float>());
  const Tensor indices = view::permute(clone(view::permute(y.indices, {2, 3, 0, 1})), {2, 3, 0, 1});
  CHECK_FALSE(indices.is_contiguous());
  CHECK(max_pool2d_backward(y.values, indices, turned.sizes(), params).to_vector<float>() ==
        max_pool2d_backward(y.values, y.indices, turned.sizes(), params).to_vector<float>());
  CHECK(max_pool2d_gather(turned, indices).to_vector<float>() == y.values.to_vector<float>());
}

TEST_CASE("what is no pooling is refused") {
  const Tensor x = zeros({1, 2, 4, 4});
  CHECK_THROWS_WITH_AS(max_pool2d(x, {.kernel_size = {2, 2}, .padding = {1, 1}, .dilation = {5, 1}}),
                       doctest::Contains("window 0 has no element but padding"), ValueError);
  CHECK_THROWS_WITH_AS(avg_pool2d(x, {.dilation = {2, 1}}), doctest::Contains("dilation is for max pooling"),
                       ValueError);
  CHECK_THROWS_WITH_AS(avg_pool2d(x, {.divisor_override = 0}), doctest::Contains("must not be 0"), ValueError);
  CHECK_THROWS_WITH_AS(max_pool2d(x, {.dilation = {0, 1}}), doctest::Contains("must be at least 1"), ValueError);
  CHECK_THROWS_WITH_AS(max_pool2d(x, {.output_size = {2, 0}}),
                       doctest::Contains("adaptive_max_pool2d: output_size must be at least 1, got 0"), ValueError);
  CHECK_THROWS_WITH_AS(avg_pool2d(zeros({1, 0, 4}), {.output_size = {2, 2}}),
                       doctest::Contains("adaptive_avg_pool2d: input [1, 0, 4] is too small"), ShapeError);
  CHECK_THROWS_WITH_AS(max_pool2d_gather(x, zeros({1, 3, 2, 2}, kInt64)), doctest::Contains("with the planes of"),
                       ShapeError);
  CHECK_THROWS_AS(max_pool2d_gather(x, zeros({1, 2, 2, 2})), DTypeError);
  CHECK_THROWS_AS(avg_pool2d(zeros({1, 2, 4, 4}, kInt64), {}), DTypeError);
}

TEST_CASE("pooling: windows, padding, ceil mode, indices") {
  const Tensor x = tensor(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 3, 3});
  const MaxPool pooled = max_pool2d(x, {});
  CHECK(pooled.values.to_vector<float>() == std::vector<float>{5});
  CHECK(pooled.indices.to_vector<int64_t>() == std::vector<int64_t>{4});
  CHECK(max_pool2d(x, {.ceil_mode = true}).values.to_vector<float>() == std::vector<float>{5, 6, 8, 9});
  CHECK(avg_pool2d(x, {{2, 2}, {1, 1}}).to_vector<float>() == std::vector<float>{3, 4, 6, 7});
  CHECK(avg_pool2d(x, {{2, 2}, {2, 2}, {1, 1}}).to_vector<float>() == std::vector<float>{0.25, 1.25, 2.75, 7});
  CHECK(avg_pool2d(x, {{2, 2}, {2, 2}, {1, 1}, false, false}).to_vector<float>() == std::vector<float>{1, 2.5, 5.5, 7});
  CHECK(max_pool2d_backward(tensor(std::vector<float>{3}, {1, 1, 1, 1}), pooled.indices, {1, 1, 3, 3}, {})
            .to_vector<float>() == std::vector<float>{0, 0, 0, 0, 3, 0, 0, 0, 0});
  CHECK_THROWS_AS(max_pool2d(zeros({1, 1, 1, 1}), {}), ShapeError);
  CHECK_THROWS_AS(max_pool2d(x, {{2, 2}, {2, 2}, {2, 2}}), ValueError);
}

}  // namespace brigade::test::pool_test
