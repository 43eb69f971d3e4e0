// Resizing, compared with PyTorch 2's values for the same input, and each gradient with its forward.
#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/pool.h>
#include <brigade/kernels/reduce.h>

#include <doctest/doctest.h>

namespace brigade::test::interpolate_test {
using namespace brigade::kernels;

namespace {

// i * i / 4 for i = 0..11, as a 3 x 4 image.
Tensor image() {
  const Tensor i = arange(0, 12, 1, kFloat64);
  const Tensor x = binary_scalar(binary(i, i, BinaryOp::Mul), 4, BinaryOp::Div, false);
  return tensor(x.to_vector<double>(), {1, 1, 3, 4});
}

struct Row {
  const char* name;
  Interpolate2dParams params;
  std::vector<double> values;
  std::vector<double> gradient;  // of sum((i + 1) * values[i])
};

const std::vector<Row> kRows{
    {"nearest, size", {.size = {5, 2}}, {0, 1, 0, 1, 4, 9, 4, 9, 16, 25}, {4, 0, 6, 0, 12, 0, 14, 0, 9, 0, 10, 0}},
    {"nearest, factors",
     {.size = {5, 6}, .scale_factor = {1.7, 1.7}},
     {0,    0, 0.25, 0.25, 1, 1,    0,    0, 0.25, 0.25, 1,  1,     4,     4,  6.25,
      6.25, 9, 9,    4,    4, 6.25, 6.25, 9, 9,    16,   16, 20.25, 20.25, 25, 25},
     {18, 26, 34, 0, 66, 74, 82, 0, 51, 55, 59, 0}},
    {"nearest, factors that change no size",
     {.size = {3, 4}, .scale_factor = {1.2, 1.2}},
     {0, 0.25, 1, 2.25, 4, 6.25, 9, 12.25, 16, 20.25, 25, 30.25},
     {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
    {"bilinear, size",
     {.size = {5, 3}, .mode = InterpolateMode::Bilinear},
     {0.041667, 0.625, 2.041667, 1.775, 3.425, 5.908333, 4.375, 7.625, 11.708333, 11.775, 16.625, 22.308333, 16.708333,
      22.625, 29.375},
     {2.833333, 3.066667, 3.6, 5.5, 10.5, 9.3, 9.9, 13.5, 15.833333, 13.466667, 14, 18.5}},
    {"bilinear, aligned corners",
     {.size = {2, 7}, .mode = InterpolateMode::Bilinear, .align_corners = true},
     {0, 0.125, 0.25, 0.625, 1, 1.625, 2.25, 16, 18.125, 20.25, 22.625, 25, 27.625, 30.25},
     {2, 6, 10, 10, 0, 0, 0, 0, 12.5, 20, 24, 20.5}},
    {"bilinear, factors",
     {.size = {2, 5}, .scale_factor = {0.7, 1.3}, .mode = InterpolateMode::Bilinear},
     {0.857143, 1.300824, 2.034341, 3.037088, 4.328297, 11.714286, 14.026099, 16.957418, 20.157967, 23.646978},
     {1.32967, 2.387363, 3.686813, 4.381868, 3.370879, 3.934066, 4.947802, 5.247253, 5.414835, 5.909341, 7.096154,
      7.293956}},
    {"bicubic, size",
     {.size = {5, 3}, .mode = InterpolateMode::Bicubic},
     {-0.385363, -0.14075, 1.147845, 0.79059, 2.16725, 4.587891, 4.275174, 7.53125, 11.831308, 12.079757, 17.21525,
      23.394725, 17.703711, 23.97125, 31.282771},
     {2.000579, 2.996616, 3.579819, 4.802986, 9.064, 9.884, 10.5, 12.024, 15.162273, 15.718921, 16.302125, 17.964681}},
    {"bicubic, aligned corners",
     {.size = {2, 7}, .mode = InterpolateMode::Bicubic, .align_corners = true},
     {0, 0.054688, 0.25, 0.53125, 1, 1.695312, 2.25, 16, 17.679688, 20.25, 22.53125, 25, 28.070312, 30.25},
     {1.625, 6, 10.75, 9.625, 0, 0, 0, 0, 11.46875, 20.65625, 25.40625, 19.46875}},
    {"bicubic, factors",
     {.size = {2, 5}, .scale_factor = {0.7, 1.3}, .mode = InterpolateMode::Bicubic},
     {0.397194, 0.703639, 1.396629, 2.455672, 3.619242, 11.90708, 14.169805, 17.609076, 21.224576, 24.595664},
     {0.656916, 1.984401, 3.411942, 3.63333, 3.4687, 4.614111, 5.853902, 5.412322, 5.145378, 6.339629, 7.636523,
      6.842847}},
    {"bicubic, one row",
     {.size = {1, 9}, .mode = InterpolateMode::Bicubic},
     {3.755498, 4.275174, 5.105163, 6.447231, 7.53125, 8.763417, 10.520523, 11.831308, 12.60317},
     {0, 0, 0, 0, 3.318158, 8.729767, 14.192901, 18.759174, 0, 0, 0, 0}},
    {"bilinear, aligned corners, one element",
     {.size = {1, 1}, .mode = InterpolateMode::Bilinear, .align_corners = true},
     {0},
     {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
};

}  // namespace

TEST_CASE("resizing gives PyTorch's values and gradients") {
  for (const Row& row : kRows) {
    CAPTURE(row.name);
    for (const auto& [dtype, bound] :
         {std::pair(kFloat64, 1e-6), std::pair(kFloat32, 1e-5), std::pair(kBFloat16, 0.1)}) {
      const Tensor y = interpolate2d(cast(image(), dtype), row.params);
      REQUIRE(y.sizes() == Shape{1, 1, row.params.size[0], row.params.size[1]});
      CHECK(y.dtype() == dtype);
      const auto values = y.to_vector<double>();
      for (size_t i = 0; i < values.size(); ++i)
        CHECK(values[i] == doctest::Approx(row.values[i]).epsilon(bound));
      const Tensor slopes = arange(1, static_cast<double>(y.numel()) + 1, 1, kFloat64);
      const Tensor gradient =
          interpolate2d_backward(cast(tensor(slopes.to_vector<double>(), y.sizes()), dtype), {1, 1, 3, 4}, row.params);
      const auto found = gradient.to_vector<double>();
      for (size_t i = 0; i < found.size(); ++i)
        CHECK(found[i] == doctest::Approx(row.gradient[i]).epsilon(bound));
    }
  }
}

TEST_CASE("the weights of an output add up to one, whatever the sizes") {
  for (const int64_t in : {1, 2, 3, 10, 57}) {
    for (const int64_t out : {1, 2, 3, 9, 10, 11, 114, 200}) {
      for (const auto& [mode, align_corners] :
           {std::pair(InterpolateMode::Bilinear, false), std::pair(InterpolateMode::Bilinear, true),
            std::pair(InterpolateMode::Bicubic, false), std::pair(InterpolateMode::Bicubic, true)}) {
        const Interpolate2dParams params{.size = {out, in}, .mode = mode, .align_corners = align_corners};
        const Tensor y = interpolate2d(full({1, 1, in, out}, 3, kFloat64), params);
        for (const double value : y.to_vector<double>())
          CHECK(value == doctest::Approx(3));
        const Tensor total = sum(interpolate2d_backward(ones({1, 1, out, in}, kFloat64), {1, 1, in, out}, params), {});
        CHECK(total.to_vector<double>()[0] == doctest::Approx(static_cast<double>(in * out)));
      }
    }
  }
}

}  // namespace brigade::test::interpolate_test
