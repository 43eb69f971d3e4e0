// Resizing: CUDA kernels, compared with the CPU's.
#include "on_device.h"

#include <brigade/kernels/pool.h>

namespace brigade::test::interpolate_test {
using namespace brigade::kernels;

namespace {

// Positions may differ in the last bit, and so do the weights: the error grows with the position.
double weight_tolerance(DType dtype) {
  return dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 2e-5 : 2 * tolerance(dtype);
}

struct Row {
  Shape x;
  std::array<int64_t, 2> size;
  std::array<double, 2> scale_factor = {0, 0};
};
const std::vector<Row> kRows{
    {{2, 3, 4, 5}, {8, 10}},              // doubled
    {{2, 3, 4, 5}, {4, 5}},               // unchanged
    {{1, 2, 7, 9}, {3, 4}},               // smaller
    {{1, 2, 3, 4}, {11, 13}},             // larger by a non-integer factor
    {{2, 1, 5, 5}, {1, 12}},              // to a row
    {{2, 1, 1, 1}, {3, 4}},               // from a point
    {{1, 1, 40, 37}, {3, 70}},            // much smaller along one dimension
    {{1, 1, 2, 3}, {61, 101}},            // much larger
    {{1, 2, 6, 7}, {10, 4}, {1.7, 0.6}},  // positions from scale factors
    {{1, 1, 5, 4}, {6, 4}, {1.3, 1.2}},   // scale factors that change no size
    {{1, 1, 100, 100}, {33, 299}, {0.333, 2.99}},
    {{0, 3, 4, 4}, {8, 8}},
};

}  // namespace

TEST_CASE("resizing and its backward in all modes: larger, smaller, by factors, in every dtype") {
  for (const Row& row : kRows) {
    CAPTURE(to_string(row.x));
    CAPTURE(row.size[0]);
    CAPTURE(row.size[1]);
    for (const auto& [mode, align_corners] :
         {std::pair(InterpolateMode::Nearest, false), std::pair(InterpolateMode::Bilinear, false),
          std::pair(InterpolateMode::Bilinear, true), std::pair(InterpolateMode::Bicubic, false),
          std::pair(InterpolateMode::Bicubic, true)}) {
      CAPTURE(static_cast<int>(mode));
      CAPTURE(align_corners);
      const Interpolate2dParams params{row.size, row.scale_factor, mode, align_corners};
      for (const DType dtype : kFloatingDTypes) {
        CAPTURE(name(dtype));
        const Tensor x = numbers(row.x, dtype, 1);
        const double bound = mode == InterpolateMode::Nearest ? 0 : weight_tolerance(dtype);
        CHECK(difference(interpolate2d(on_device(x), params), interpolate2d(x, params)) <= bound);
        const Tensor grad = numbers({row.x[0], row.x[1], row.size[0], row.size[1]}, dtype, 2);
        CHECK(difference(interpolate2d_backward(on_device(grad), row.x, params),
                         interpolate2d_backward(grad, row.x, params)) <= weight_tolerance(dtype) * 4);
      }
    }
  }
}

TEST_CASE("resizing of strided images and gradients; what is refused") {
  const Interpolate2dParams params{.size = {5, 9}, .mode = InterpolateMode::Bilinear};
  const auto turned = [](const Tensor& t) { return view::permute(t, {2, 3, 0, 1}); };
  const Tensor x = numbers({4, 6, 2, 3}, kFloat32, 1);
  CHECK(difference(interpolate2d(turned(on_device(x)), params), interpolate2d(turned(x), params)) <= 1e-5);
  const Tensor grad = numbers({5, 9, 2, 3}, kFloat32, 2);
  CHECK(difference(interpolate2d_backward(turned(on_device(grad)), {2, 3, 4, 6}, params),
                   interpolate2d_backward(turned(grad), {2, 3, 4, 6}, params)) <= 1e-5);
  const Tensor there = on_device(x);
  CHECK_THROWS_WITH_AS(interpolate2d(there, {.size = {0, 3}}), doctest::Contains("must be 1 to 2^30"), ShapeError);
  CHECK_THROWS_AS(interpolate2d(on_device(ones({2, 2})), params), ShapeError);
  CHECK_THROWS_AS(interpolate2d(on_device(ones({1, 1, 2, 2}, kInt64)), params), DTypeError);
  CHECK_THROWS_WITH_AS(interpolate2d_backward(there, {1, 1, 2, 2}, params),
                       doctest::Contains("expected a gradient [1, 1, 5, 9]"), ShapeError);
}

}  // namespace brigade::test::interpolate_test
