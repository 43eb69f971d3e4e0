// Convolutions against plain loops.
#include <brigade/core/view.h>
#include <brigade/kernels/conv.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace brigade::test::conv_test {
using namespace brigade::kernels;
using test::at;
using test::largest_difference;
using test::random;

TEST_CASE("convolution by oneDNN and by im2col agree with plain loops") {
  struct Row {
    Shape x, w;
    Conv2dParams p;
  };
  for (const Row& row :
       std::vector<Row>{{{2, 3, 7, 6}, {4, 3, 3, 3}, {}},
                        {{1, 16, 9, 9}, {32, 16, 3, 3}, {.padding = {1, 1}}},
                        {{2, 4, 8, 5}, {6, 2, 3, 2}, {.stride = {2, 1}, .padding = {1, 0}, .groups = 2}},
                        {{1, 2, 9, 9}, {2, 2, 3, 3}, {.stride = {1, 2}, .padding = {2, 1}, .dilation = {2, 3}}},
                        {{3, 8, 4, 4}, {8, 1, 3, 3}, {.padding = {1, 1}, .groups = 8}},
                        {{2, 16, 24, 23}, {17, 16, 1, 1}, {}},
                        {{2, 6, 5, 4}, {4, 3, 1, 1}, {.groups = 2}},
                        {{1, 16, 23, 24}, {16, 16, 1, 1}, {.stride = {2, 1}, .padding = {1, 0}}},
                        {{1, 16, 23, 24}, {16, 16, 1, 1}, {.padding = {1, 2}}},
                        {{1, 1, 1, 1}, {1, 1, 1, 1}, {}}}) {
    const Tensor x = random(row.x, 1, kFloat64);
    const Tensor w = random(row.w, 2, kFloat64);
    const Tensor bias = random({row.w[0]}, 3, kFloat64);
    const Tensor y = conv2d(x, w, bias, row.p);
    CAPTURE(to_string(row.w));
    // Plain loops.
    const int64_t in_per_group = row.w[1];
    const int64_t out_per_group = row.w[0] / row.p.groups;
    double worst = 0;
    int64_t i = 0;
    for (int64_t n = 0; n < y.size(0); ++n) {
      for (int64_t o = 0; o < y.size(1); ++o) {
        for (int64_t h = 0; h < y.size(2); ++h) {
          for (int64_t v = 0; v < y.size(3); ++v, ++i) {
            double sum = at(bias, o);
            for (int64_t c = 0; c < in_per_group; ++c) {
              for (int64_t a = 0; a < row.w[2]; ++a) {
                for (int64_t b = 0; b < row.w[3]; ++b) {
                  const int64_t r = h * row.p.stride[0] - row.p.padding[0] + a * row.p.dilation[0];
                  const int64_t s = v * row.p.stride[1] - row.p.padding[1] + b * row.p.dilation[1];
                  if (r < 0 || s < 0 || r >= row.x[2] || s >= row.x[3]) continue;
                  const int64_t channel = o / out_per_group * in_per_group + c;
                  sum += at(x, ((n * row.x[1] + channel) * row.x[2] + r) * row.x[3] + s) *
                         at(w, ((o * in_per_group + c) * row.w[2] + a) * row.w[3] + b);
                }
              }
            }
            worst = test::worse(worst, std::abs(sum - at(y, i)));
          }
        }
      }
    }
    CHECK(worst < 1e-12);
    // float32, which may use a different code path, and both backward passes.
    const Tensor x32 = cast(x, kFloat32);
    const Tensor w32 = cast(w, kFloat32);
    CHECK(largest_difference(conv2d(x32, w32, cast(bias, kFloat32), row.p), y) < 1e-4);
    const Tensor g = random(y.sizes(), 4, kFloat64);
    const Tensor g32 = cast(g, kFloat32);
    CHECK(largest_difference(conv2d_backward_input(g32, w32, {}, row.x, row.p),
                             conv2d_backward_input(g, w, {}, row.x, row.p)) < 1e-4);
    const Tensor exact = conv2d_backward_weight(g, x, row.w, row.p, {}, false);
    CHECK(largest_difference(conv2d_backward_weight(g32, x32, row.w, row.p, {}, false), exact) < 1e-3);
    const Tensor out = ones(row.w);
    conv2d_backward_weight(g32, x32, row.w, row.p, out, true);
    CHECK(largest_difference(out, binary_scalar(exact, 1, BinaryOp::Add, false)) < 1e-3);
  }
  CHECK_THROWS_AS(conv2d(zeros({1, 3, 4, 4}), zeros({2, 2, 3, 3}), {}, {}), ShapeError);
  CHECK_THROWS_AS(conv2d(zeros({1, 1, 2, 2}), zeros({1, 1, 3, 3}), {}, {}), ShapeError);
  CHECK(conv2d(zeros({0, 1, 4, 4}), zeros({2, 1, 3, 3}), {}, {}).sizes() == Shape{0, 2, 2, 2});
}

TEST_CASE("a transposed convolution adds its bias before it rounds, and checks it") {
  // The exact result is 1 + 3/4 place; if the sum were rounded before the bias is added, the result would be 1.
  for (const DType dtype : {kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    const double place = dtype == kFloat16 ? 0x1p-10 : 0x1p-7;
    const Tensor grad = full({1, 2, 3, 3}, 1, dtype), weight = full({2, 1, 1, 1}, 0.5, dtype);
    fill(view::slice(weight, 0, 1, 2), 0.5 + place / 2);
    // The bias adds place / 4 to a sum of 1 + place / 2.
    const Tensor bias = full({1}, place / 4, dtype);
    const Tensor x = conv2d_backward_input(grad, weight, bias, {1, 1, 3, 3}, {});
    CHECK(x.dtype() == dtype);
    for (const double value : x.to_vector<double>())
      CHECK(value == 1 + place);
    CHECK(conv2d_backward_input(grad, weight, {}, {1, 1, 3, 3}, {}).to_vector<double>()[0] == 1);
  }
  const Tensor grad = ones({1, 2, 3, 3}), weight = ones({2, 4, 1, 1});
  CHECK(conv2d_backward_input(ones({0, 2, 3, 3}), weight, ones({4}), {0, 4, 3, 3}, {}).numel() == 0);
  CHECK_THROWS_WITH_AS(conv2d_backward_input(grad, weight, ones({2}), {1, 4, 3, 3}, {}),
                       doctest::Contains("conv2d backward: expected a bias float32 [4], got"), ShapeError);
  CHECK_THROWS_AS(conv2d_backward_input(grad, weight, ones({4}, kFloat64), {1, 4, 3, 3}, {}), ShapeError);
}

}  // namespace brigade::test::conv_test
