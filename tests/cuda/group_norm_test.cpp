// Group norm: CUDA kernels, compared with the CPU's.
#include "on_device.h"

#include <brigade/kernels/normalization.h>

namespace brigade::test::group_norm_test {
using namespace brigade::kernels;

namespace {

// The device computes statistics in the compute type of x, the CPU in double.
double bound(DType dtype) { return (dtype == kFloat64 || dtype == kFloat32 ? 8 : 2) * tolerance(dtype); }

constexpr double kEps = 1e-2;

struct Row {
  Shape sizes;
  int64_t groups;
};
// Rows and planes shorter and longer than a warp and a block process, odd and whole vectors, samples without planes.
const std::vector<Row> kRows{{{3, 6}, 2},         {{5, 8, 3}, 4},       {{2, 4, 8, 8}, 2},   {{2, 4, 5, 5, 3}, 1},
                             {{1, 4, 48, 64}, 2}, {{1, 2, 130, 80}, 2}, {{1, 2, 67, 77}, 1}, {{1, 1, 17, 301}, 1},
                             {{2, 3, 32, 32}, 3}, {{4, 2, 1, 16}, 2},   {{1, 2, 96, 100}, 1}};

Tensor there(const Tensor& x) { return x.defined() ? on_device(x) : x; }

void check_close(const Tensor& found, const Tensor& expected, double allowed) {
  REQUIRE(found.defined() == expected.defined());
  if (expected.defined()) CHECK(difference(found, expected) <= allowed);
}

}  // namespace

TEST_CASE("group norm, forward and backward") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(std::string(name(dtype)));
    for (const Row& row : kRows) {
      CAPTURE(to_string(row.sizes));
      const Shape channels{row.sizes[1]};
      const Tensor x = cast(binary_scalar(numbers(row.sizes, kFloat64), 1, BinaryOp::Add, false), dtype);
      const Tensor grad = numbers(row.sizes, dtype, 2);
      const double sums = bound(dtype) * std::sqrt(static_cast<double>(x.numel() / channels[0]));
      // Parameters of the same dtype, of another dtype, or none.
      for (const int kind : {0, 1, 2}) {
        CAPTURE(kind);
        const DType parameters = kind == 0 ? dtype : dtype == kBFloat16 ? kFloat32 : kBFloat16;
        const Tensor weight = kind == 2 ? Tensor() : numbers(channels, parameters, 3);
        const Tensor bias = kind == 2 ? Tensor() : numbers(channels, parameters, 4);
        const double digits = std::max(bound(dtype), kind == 1 ? 2 * tolerance(parameters) : 0);
        const GroupNormBackwardOptions options{row.groups, true, {kind != 2, parameters}, {kind == 0, parameters}};

        const GroupNorm expected = group_norm(x, row.groups, weight, bias, kEps);
        const GroupNorm found = group_norm(on_device(x), row.groups, there(weight), there(bias), kEps);
        check_close(found.y, expected.y, 2 * bound(dtype));
        check_close(found.mean, expected.mean, bound(dtype));
        check_close(found.rstd, expected.rstd, bound(dtype));
        const GroupNormGrads slopes = group_norm_backward(grad, x, weight, expected.mean, expected.rstd, options);
        const GroupNormGrads got = group_norm_backward(on_device(grad), on_device(x), there(weight),
                                                       there(expected.mean), there(expected.rstd), options);
        check_close(got.x, slopes.x, 4 * bound(dtype));
        check_close(got.weight, slopes.weight, std::max(sums, digits));
        check_close(got.bias, slopes.bias, std::max(sums, digits));
      }
    }
  }
}

TEST_CASE("rows that start where no vector may, that are not dense, and none at all; the same bits each time") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(std::string(name(dtype)));
    const Tensor flat = numbers({1 + 2 * 4 * 64}, dtype, 1);
    const Tensor wide = numbers({64, 4, 2}, dtype, 2);
    const auto late = [](const Tensor& x) { return view::as_strided(x, {2, 4, 64}, {256, 64, 1}, 1); };
    const auto turned = [](const Tensor& x) { return view::transpose(x, 0, 2); };
    const auto run = [&](const Tensor& x) {
      const GroupNorm norm = group_norm(x, 2, {}, {}, kEps);
      return group_norm_backward(norm.y, x, {}, norm.mean, norm.rstd, {2, true, {true, dtype}, {true, dtype}});
    };
    const auto both = [&](const Tensor& here, const Tensor& far) {
      const GroupNormGrads expected = run(here);
      const GroupNormGrads found = run(far);
      check_close(found.x, expected.x, 16 * bound(dtype));
      check_close(found.weight, expected.weight, 64 * bound(dtype));
      check_close(found.bias, expected.bias, 64 * bound(dtype));
      const GroupNormGrads again = run(far);
      CHECK(difference(again.x, on_cpu(found.x)) == 0);
      CHECK(difference(again.weight, on_cpu(found.weight)) == 0);
    };
    both(late(flat), late(on_device(flat)));
    both(turned(wide), turned(on_device(wide)));
    const Tensor none = on_device(zeros({0, 4, 3}, dtype));
    CHECK(run(none).x.sizes() == Shape{0, 4, 3});
  }
}

}  // namespace brigade::test::group_norm_test
