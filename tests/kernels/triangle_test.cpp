// Triangles of matrices, compared with plain loops.
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace brigade::test::triangle_test {
using namespace brigade::kernels;
using test::at;

namespace {

// Test values plus 1, so that only elements set to zero are zero.
Tensor matrices(const Shape& sizes, DType dtype) {
  if (dtype == kBool) return ones(sizes, dtype);
  return binary_scalar(test::counted(sizes, dtype, 3), 1, BinaryOp::Add, false);
}

// The number of elements that differ from a plain loop.
int64_t wrong_elements(const Tensor& x, Triangle part, int64_t diagonal) {
  const Tensor found = triangle(x, part, diagonal);
  REQUIRE(found.sizes() == x.sizes());
  REQUIRE(found.dtype() == x.dtype());
  CHECK(found.is_contiguous());
  const int64_t rows = x.size(-2), columns = x.size(-1);
  int64_t wrong = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t row = i / columns % rows, distance = i % columns - row;
    const bool stays = part == Triangle::Lower ? distance <= diagonal : distance >= diagonal;
    wrong += at(found, i) != (stays ? at(x, i) : 0);
  }
  return wrong;
}

}  // namespace

TEST_CASE("triangles of every dtype: odd sizes, batches, views, no elements, any diagonal") {
  for (const DType dtype : test::kEveryDType) {
    CAPTURE(std::string(name(dtype)));
    std::vector<Tensor> all;
    for (const Shape& sizes :
         std::vector<Shape>{{1, 1}, {3, 5}, {5, 3}, {2, 3, 7, 4}, {33, 65}, {0, 4}, {4, 0}, {0, 3, 3}, {2, 301, 33}})
      all.push_back(matrices(sizes, dtype));
    all.push_back(view::transpose(matrices({7, 5}, dtype), 0, 1));
    all.push_back(view::slice(matrices({6, 19}, dtype), 1, 1, 18, 3));
    all.push_back(view::expand(matrices({1, 6}, dtype), {2, 5, 6}));
    for (const Tensor& x : all) {
      CAPTURE(to_string(x.sizes()));
      for (const int64_t diagonal : {-500, -4, -1, 0, 1, 2, 17, 500}) {
        CAPTURE(diagonal);
        for (const Triangle part : {Triangle::Lower, Triangle::Upper})
          CHECK(wrong_elements(x, part, diagonal) == 0);
      }
    }
  }
}

TEST_CASE("a triangle is a copy, and the furthest diagonals do not overflow") {
  const Tensor x = matrices({3, 4}, kFloat32);
  constexpr int64_t kFurthest = std::numeric_limits<int64_t>::max(), kNearest = std::numeric_limits<int64_t>::min();
  const Tensor all = triangle(x, Triangle::Lower, kFurthest);
  CHECK(all.raw_data() != x.raw_data());
  CHECK(all.to_vector<float>() == x.to_vector<float>());
  CHECK(triangle(x, Triangle::Upper, kNearest).to_vector<float>() == x.to_vector<float>());
  CHECK(triangle(x, Triangle::Lower, kNearest).to_vector<float>() == std::vector<float>(12, 0));
  CHECK(triangle(x, Triangle::Upper, kFurthest).to_vector<float>() == std::vector<float>(12, 0));
}

TEST_CASE("a NaN outside of a triangle is zero, one inside stays") {
  for (const DType dtype : test::kEveryFloating) {
    const Tensor low = triangle(full({2, 2}, std::nan(""), dtype), Triangle::Lower, -1);
    CHECK(at(low, 0) == 0);
    CHECK(std::isnan(at(low, 2)));
  }
}

TEST_CASE("errors of triangles say what was expected") {
  CHECK_THROWS_WITH_AS(triangle(ones({3}), Triangle::Lower, 0), "tril: expected a matrix, or a batch of them, got [3]",
                       ShapeError);
  CHECK_THROWS_WITH_AS(triangle(ones({}), Triangle::Upper, 0), "triu: expected a matrix, or a batch of them, got []",
                       ShapeError);
}

}  // namespace brigade::test::triangle_test
