// Joining tensors, and taking rows.
#include <brigade/core/view.h>
#include <brigade/kernels/indexing.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <vector>

namespace brigade::test::concat_test {
using namespace brigade::kernels;

TEST_CASE("cat and row selection") {
  const std::vector<Tensor> parts{tensor(std::vector<float>{1, 2}, {2, 1}),
                                  view::transpose(tensor(std::vector<float>{3, 4, 5, 6}, {2, 2}), 0, 1)};
  CHECK(cat(std::span<const Tensor>(parts), 1).to_vector<float>() == std::vector<float>{1, 3, 5, 2, 4, 6});
  const std::vector<Tensor> bad{zeros({2, 1}), zeros({3, 1})};
  CHECK_THROWS_WITH_AS(cat(std::span<const Tensor>(bad), 1), doctest::Contains("tensor 1 has shape [3, 1]"),
                       ShapeError);
  const Tensor x = tensor(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
  CHECK(index_rows(x, tensor<int64_t>({2, 0, 2})).to_vector<float>() == std::vector<float>{5, 6, 1, 2, 5, 6});
  CHECK(index_rows_backward(ones({3, 2}), tensor<int64_t>({2, 0, 2}), {3, 2}).to_vector<float>() ==
        std::vector<float>{1, 1, 0, 0, 2, 2});
  CHECK_THROWS_WITH_AS(index_rows(x, tensor<int64_t>({0, 3})), "index_select: index 3 at position 1 is not a row 0..2",
                       IndexError);
}

TEST_CASE("one_hot of classes in any layout") {
  const Tensor classes = view::transpose(tensor(std::vector<int64_t>{2, 0, 1, 2, 0, 0}, {3, 2}), 0, 1);
  const Tensor found = one_hot(classes, 3);
  CHECK(found.dtype() == kInt64);
  CHECK(found.sizes() == Shape{2, 3, 3});
  CHECK(found.to_vector<int64_t>() == std::vector<int64_t>{0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0});
  CHECK(one_hot(tensor(std::vector<int64_t>{1}, {}), 2).to_vector<int64_t>() == std::vector<int64_t>{0, 1});
  CHECK(one_hot(zeros({0, 2}, kInt64), 4).sizes() == Shape{0, 2, 4});
  CHECK_THROWS_WITH_AS(one_hot(zeros({2}), 3),
                       "one_hot: expected int64 indices, got float32 [2]; convert with .to(kInt64)", DTypeError);
  CHECK_THROWS_WITH_AS(one_hot(zeros({2}, kInt64), 0), "one_hot: classes must be at least 1, got 0", ValueError);
  CHECK_THROWS_AS(one_hot(tensor<int64_t>({0, 3}), 3), IndexError);
}

}  // namespace brigade::test::concat_test
