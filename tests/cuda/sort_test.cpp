// Sorting and topk: CUDA kernels, compared with the CPU's. The result is unique, so nothing may differ.
#include "on_device.h"

#include <brigade/kernels/indexing.h>

namespace brigade::test::sort_test {
using namespace brigade::kernels;

namespace {

// Many equal values; floating dtypes also get NaN, infinities, and both zeros.
Tensor mixed(const Shape& sizes, DType dtype, uint64_t seed = 1) {
  const Tensor x = numbers(sizes, kFloat64, seed);
  auto* const values = x.data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (i % 3 == 1) values[i] = std::round(values[i]);
    if (!is_floating_point(dtype)) continue;
    if (i % 31 == 5) values[i] = std::nan("");
    if (i % 37 == 5) values[i] = i % 2 == 0 ? INFINITY : -INFINITY;
    if (i % 29 == 3) values[i] = i % 2 == 0 ? 0.0 : -0.0;
  }
  if (dtype == kUInt8 || dtype == kBool) return cast(unary(x, UnaryOp::Abs), dtype);
  return cast(dtype == kInt64 || dtype == kInt32 ? binary_scalar(x, 1000, BinaryOp::Mul, false) : x, dtype);
}

void check_same(const Sorted& found, const Sorted& expected) {
  CHECK(difference(found.indices, expected.indices) == 0);
  CHECK(difference(found.values, expected.values) == 0);
}

}  // namespace

TEST_CASE("rows that a block sorts, several or one, and rows that are sorted by digits") {
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    for (const auto& [sizes, dim] : std::vector<std::pair<Shape, int>>{{{}, 0},
                                                                       {{0}, 0},
                                                                       {{1}, 0},
                                                                       {{100, 3}, 1},
                                                                       {{3, 100}, 0},
                                                                       {{3, 20, 4}, 1},
                                                                       {{5, 100}, 1},
                                                                       {{1, 2048}, 1},
                                                                       {{2, 2049}, 1}}) {
      CAPTURE(to_string(sizes));
      const Tensor x = mixed(sizes, dtype);
      for (const bool descending : {false, true})
        check_same(sort(on_device(x), dim, descending), sort(x, dim, descending));
    }
  }
  // A row so long that several tiles are counted one after another.
  const Tensor longer = mixed({1, 5000}, kFloat32);
  check_same(sort(on_device(longer), 1, false), sort(longer, 1, false));
}

TEST_CASE("the first k, by selection and by sorting whole rows") {
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    for (const auto& [sizes, dim] :
         std::vector<std::pair<Shape, int>>{{{}, 0}, {{1}, 0}, {{40, 3}, 1}, {{3, 20, 4}, 1}, {{2, 1200}, 1}}) {
      CAPTURE(to_string(sizes));
      const Tensor x = mixed(sizes, dtype);
      const int64_t length = x.dim() > 0 ? sizes[dim] : 1;
      for (const int64_t k : {int64_t{1}, std::min<int64_t>(length, 50), std::min<int64_t>(length, 1024)}) {
        CAPTURE(k);
        for (const bool largest : {false, true})
          check_same(topk(on_device(x), k, dim, largest), topk(x, k, dim, largest));
      }
    }
  }
  // More elements than a block collects.
  const Tensor many = mixed({2, 2500}, kFloat16);
  check_same(topk(on_device(many), 1025, 1, true), topk(many, 1025, 1, true));
  check_same(topk(on_device(many), 1024, 1, false), topk(many, 1024, 1, false));
  // All equal: the first ones win.
  const Tensor same = full({2, 2100}, 1.5, kFloat32);
  check_same(topk(on_device(same), 7, 1, true), topk(same, 7, 1, true));
  check_same(sort(on_device(same), 1, true), sort(same, 1, true));
  const Tensor extremes = tensor<int64_t>({INT64_MAX, INT64_MIN, 0, -1, INT64_MAX - 1, INT64_MIN + 1});
  check_same(sort(on_device(extremes), 0, false), sort(extremes, 0, false));
  check_same(topk(on_device(extremes), 4, 0, true), topk(extremes, 4, 0, true));
  CHECK(topk(on_device(same), 0, 1, true).values.sizes() == Shape{2, 0});
  CHECK_THROWS_AS(topk(on_device(same), 2101, 1, true), ValueError);
}

}  // namespace brigade::test::sort_test
