// Matrix products against plain loops in double.
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/matmul.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace brigade::test::matmul_test {
using namespace brigade::kernels;
using test::at;
using test::numbers;

TEST_CASE("matrix products agree with plain loops, in every dtype and layout, and write to the given destination") {
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    for (const auto& [m, k, n] :
         std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {3, 5, 2}, {17, 9, 33}, {40, 50, 30}, {2, 0, 3}, {0, 4, 3}}) {
      for (const bool ta : {false, true}) {
        for (const bool tb : {false, true}) {
          const Tensor a = numbers(ta ? Shape{k, m} : Shape{m, k}, dtype);
          const Tensor b = numbers(tb ? Shape{n, k} : Shape{k, n}, dtype, 3);
          const Tensor out = full({m, n}, 1, dtype);
          const Tensor result = matmul(a, b, {.transpose_a = ta, .transpose_b = tb, .out = out, .accumulate = true});
          CHECK(result.is_same(out));
          int64_t wrong = 0;
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              double expected = 1;
              for (int64_t l = 0; l < k; ++l)
                expected += at(a, ta ? l * m + i : i * k + l) * at(b, tb ? j * k + l : l * n + j);
              // Sums of small whole numbers; bfloat16 rounds those above 256.
              wrong +=
                  std::abs(at(result, i * n + j) - expected) > (dtype == kBFloat16 ? 0.01 * std::abs(expected) + 1 : 0);
            }
          }
          CAPTURE(name(dtype));
          CHECK(wrong == 0);
        }
      }
    }
  }
  // A view without a unit stride is copied; leading dimensions broadcast.
  const Tensor wide = numbers({2, 3, 8}, kFloat32);
  const Tensor view = view::slice(wide, 2, 0, 8, 2);
  const Tensor product = matmul(view, numbers({1, 4, 2}, kFloat32, 1), {});
  CHECK(product.sizes() == Shape{2, 3, 2});
  CHECK(product.to_vector<float>() == matmul(clone(view), numbers({1, 4, 2}, kFloat32, 1), {}).to_vector<float>());
  // Missing leading dimensions and those of size 1 broadcast.
  const Tensor batches = numbers({3, 2, 4, 5}, kFloat64);
  for (const Shape& sizes : {Shape{5, 6}, Shape{1, 5, 6}, Shape{2, 5, 6}, Shape{3, 1, 5, 6}, Shape{1, 2, 5, 6}}) {
    CAPTURE(to_string(sizes));
    const Tensor b = numbers(sizes, kFloat64, 2);
    const Tensor all = view::expand(b, {3, 2, 5, 6});
    const Tensor both[] = {matmul(batches, b, {}), matmul(b, batches, {.transpose_a = true, .transpose_b = true})};
    REQUIRE(both[0].sizes() == Shape{3, 2, 4, 6});
    REQUIRE(both[1].sizes() == Shape{3, 2, 6, 4});
    int64_t wrong = 0;
    for (int64_t batch = 0; batch < 6; ++batch) {
      for (int64_t i = 0; i < 4; ++i) {
        for (int64_t j = 0; j < 6; ++j) {
          double expected = 0;
          for (int64_t l = 0; l < 5; ++l)
            expected += at(batches, (batch * 4 + i) * 5 + l) * at(all, (batch * 5 + l) * 6 + j);
          wrong += at(both[0], (batch * 4 + i) * 6 + j) != expected || at(both[1], (batch * 6 + j) * 4 + i) != expected;
        }
      }
    }
    CHECK(wrong == 0);
  }
  CHECK_THROWS_WITH_AS(matmul(zeros({2, 3}), zeros({4, 5}), {}),
                       doctest::Contains("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"), ShapeError);
  CHECK_THROWS_AS(matmul(zeros({2, 3}), zeros({3, 2}, kFloat64), {}), DTypeError);
}

}  // namespace brigade::test::matmul_test
