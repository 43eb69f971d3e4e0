// Pooling: CUDA kernels, compared with the CPU's.
#include "on_device.h"

#include <brigade/kernels/pool.h>

#include <limits>

namespace brigade::test::pool_test {
using namespace brigade::kernels;

TEST_CASE("pooling and its backward: windows that overlap, leave gaps, hang over the edge; every dtype") {
  struct Row {
    Shape x;
    Pool2dParams params;
  };
  for (const Row& row : std::vector<Row>{{{2, 3, 8, 8}, {}},
                                         {{3, 7, 9}, {{3, 3}, {2, 2}, {1, 1}}},
                                         {{2, 2, 7, 9}, {{3, 2}, {2, 3}, {1, 0}, true}},
                                         {{1, 2, 10, 6}, {{2, 3}, {3, 5}, {1, 1}, true, false}},
                                         {{1, 1, 6, 7}, {{3, 4}, {1, 1}, {1, 2}, false, false}},
                                         {{1, 1, 5, 5}, {{5, 5}, {1, 1}, {2, 2}}},
                                         {{2, 1, 3, 3}, {{3, 3}, {1, 1}, {0, 0}}},
                                         {{3, 5, 14, 15}, {{2, 2}, {1, 1}, {0, 0}}},
                                         {{0, 3, 4, 4}, {}},
                                         {{2, 3, 7, 8}, {.output_size = {3, 5}}},
                                         {{2, 9, 4}, {.output_size = {1, 1}}},
                                         {{1, 2, 3, 2}, {.output_size = {5, 3}}},
                                         {{1, 2, 5, 6}, {.divisor_override = -3}},
                                         {{4, 1, 1, 1}, {{1, 1}, {1, 1}, {0, 0}}}}) {
    CAPTURE(to_string(row.x));
    for (const DType dtype : kFloatingDTypes) {
      CAPTURE(name(dtype));
      const Tensor x = numbers(row.x, dtype, 1);
      const MaxPool here = max_pool2d(x, row.params);
      const MaxPool there = max_pool2d(on_device(x), row.params);
      CHECK(difference(there.values, here.values) == 0);
      CHECK(difference(there.indices, here.indices) == 0);
      CHECK(difference(max_pool2d_gather(on_device(x), there.indices), here.values) == 0);
      const Tensor grad = numbers(here.values.sizes(), dtype, 2);
      CHECK(difference(max_pool2d_backward(on_device(grad), there.indices, row.x, row.params),
                       max_pool2d_backward(grad, here.indices, row.x, row.params)) <= tolerance(dtype));
      CHECK(difference(avg_pool2d(on_device(x), row.params), avg_pool2d(x, row.params)) <= tolerance(dtype));
      CHECK(difference(avg_pool2d_backward(on_device(grad), row.x, row.params),
                       avg_pool2d_backward(grad, row.x, row.params)) <= 2 * tolerance(dtype));
    }
  }
}

TEST_CASE("windows with steps between their elements") {
  for (const Pool2dParams& params :
       std::vector<Pool2dParams>{{.kernel_size = {3, 2}, .stride = {1, 2}, .padding = {1, 1}, .dilation = {2, 3}},
                                 {.kernel_size = {2, 3}, .stride = {3, 1}, .ceil_mode = true, .dilation = {4, 2}}}) {
    const Tensor x = numbers({2, 2, 9, 11}, kFloat32, 1);
    const MaxPool here = max_pool2d(x, params);
    const MaxPool there = max_pool2d(on_device(x), params);
    CHECK(difference(there.values, here.values) == 0);
    CHECK(difference(there.indices, here.indices) == 0);
    const Tensor grad = numbers(here.values.sizes(), kFloat32, 2);
    CHECK(difference(max_pool2d_backward(on_device(grad), there.indices, x.sizes(), params),
                     max_pool2d_backward(grad, here.indices, x.sizes(), params)) <= tolerance(kFloat32));
  }
}

TEST_CASE("pooling of equal values, infinities and NaN, of strided inputs and gradients") {
  const float inf = std::numeric_limits<float>::infinity();
  const Pool2dParams params{{2, 2}, {1, 1}, {1, 1}};
  const Tensor special =
      tensor(std::vector<float>{NAN, 1, 1, -inf, -inf, 1, NAN, 1, 1, -inf, -inf, 0, 0, 0, inf, inf}, {1, 4, 4});
  const MaxPool here = max_pool2d(special, params);
  const MaxPool there = max_pool2d(on_device(special), params);
  CHECK(difference(there.values, here.values) == 0);
  CHECK(difference(there.indices, here.indices) == 0);

  const Tensor x = numbers({5, 6, 2, 3}, kFloat32, 1);
  const auto turned = [](const Tensor& t) { return view::permute(t, {2, 3, 0, 1}); };
  CHECK(difference(max_pool2d(turned(on_device(x)), params).values, max_pool2d(turned(x), params).values) == 0);
  CHECK(difference(avg_pool2d(turned(on_device(x)), params), avg_pool2d(turned(x), params)) <= 1e-6);
  const Tensor grad = numbers({6, 7, 2, 3}, kFloat32, 2);
  const Shape sizes{2, 3, 5, 6};
  CHECK(difference(avg_pool2d_backward(turned(on_device(grad)), sizes, params),
                   avg_pool2d_backward(turned(grad), sizes, params)) <= 1e-6);
  const Tensor indices = max_pool2d(turned(x), params).indices;
  CHECK(difference(max_pool2d_backward(turned(on_device(grad)), on_device(indices), sizes, params),
                   max_pool2d_backward(turned(grad), indices, sizes, params)) <= 1e-6);

  const Tensor there_x = on_device(x);
  CHECK_THROWS_AS(max_pool2d(there_x, {{8, 8}, {1, 1}, {0, 0}}), ShapeError);
  CHECK_THROWS_AS(avg_pool2d(there_x, {{2, 2}, {0, 1}, {0, 0}}), ValueError);
  CHECK_THROWS_WITH_AS(avg_pool2d_backward(there_x, {2, 3, 5, 6}, params),
                       doctest::Contains("avg_pool2d backward: expected a gradient [2, 3, 6, 7]"), ShapeError);
  CHECK_THROWS_AS(max_pool2d_backward(there_x, on_device(indices), {2, 3, 5, 6}, params), ShapeError);
  CHECK_THROWS_AS(avg_pool2d(on_device(ones({1, 2, 2}, kInt64)), {}), DTypeError);
}

}  // namespace brigade::test::pool_test
