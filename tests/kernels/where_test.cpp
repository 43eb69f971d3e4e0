// where against plain loops.
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

namespace brigade::test::where_test {
using namespace brigade::kernels;
using test::counted;

TEST_CASE("where: every dtype, dense, broadcast, strided, with numbers on either side") {
  for (const DType dtype : test::kEveryDType) {
    CAPTURE(std::string(name(dtype)));
    const Tensor wide = counted({9, 14}, dtype, 3);
    const std::vector<std::array<Tensor, 3>> rows{
        {counted({5, 7}, kBool, 0), counted({5, 7}, dtype, 1), counted({5, 7}, dtype, 2)},
        {counted({4, 1}, kBool, 0), counted({3}, dtype, 1), counted({2, 1, 3}, dtype, 2)},
        {view::transpose(counted({7, 9}, kBool, 1), 0, 1), view::slice(wide, 1, 0, 14, 2), view::slice(wide, 1, 7, 14)},
        {counted({70001}, kBool, 0), counted({70001}, dtype, 1), counted({1}, dtype, 2)},
        {counted({0, 3}, kBool, 0), counted({1, 3}, dtype, 1), counted({}, dtype, 2)}};
    for (const auto& [condition, a, b] : rows) {
      const Tensor y = kernels::where(condition, a, b);
      const Shape sizes = broadcast_shapes(broadcast_shapes(condition.sizes(), a.sizes()), b.sizes());
      REQUIRE(y.sizes() == sizes);
      REQUIRE(y.dtype() == dtype);
      const Tensor left = kernels::where(condition, a, 1.0);
      const Tensor right = kernels::where(condition, 1.0, b);
      int64_t wrong = 0;
      for (int64_t i = 0; i<y.numel(); i += y.numel()> 1000 ? 997 : 1) {
        const bool is_a = test::broadcast_at(condition, sizes, i) != 0;
        wrong += test::broadcast_at(y, sizes, i) != test::broadcast_at(is_a ? a : b, sizes, i);
      }
      for (int64_t i = 0; i<left.numel(); i += left.numel()> 1000 ? 997 : 1)
        wrong += test::broadcast_at(left, left.sizes(), i) !=
                 (test::broadcast_at(condition, left.sizes(), i) != 0 ? test::broadcast_at(a, left.sizes(), i) : 1);
      for (int64_t i = 0; i<right.numel(); i += right.numel()> 1000 ? 997 : 1)
        wrong += test::broadcast_at(right, right.sizes(), i) !=
                 (test::broadcast_at(condition, right.sizes(), i) != 0 ? 1 : test::broadcast_at(b, right.sizes(), i));
      CHECK(wrong == 0);
    }
  }
  const Tensor chosen = tensor(std::vector<double>{1, 0}, {2});
  const Tensor condition = cast(chosen, kBool);
  CHECK(kernels::where(condition, 2.5, -1.0).to_vector<double>() == std::vector<double>{2.5, -1});
  CHECK(kernels::where(condition, 2.5, -1.0).dtype() == kFloat32);
  CHECK(kernels::where(condition, tensor<int64_t>({1, 2}), 0.5).to_vector<double>() == std::vector<double>{1, 0.5});
  CHECK(kernels::where(condition, tensor<int64_t>({1, 2}), 5).dtype() == kInt64);
  CHECK(kernels::where(condition, tensor<int64_t>({1, 2}), tensor<float>({0.5F, 1.5F})).dtype() == kFloat32);
  CHECK_THROWS_WITH_AS(kernels::where(chosen, 1.0, 2.0), doctest::Contains("expected a bool condition, got float64"),
                       DTypeError);
  CHECK_THROWS_AS(kernels::where(condition, zeros({3}), 2.0), ShapeError);
}

TEST_CASE("an integer leaves integers what they are, a floating number makes float32 of them") {
  const Tensor yes = ones({3}, kBool);
  for (const DType dtype : {kInt64, kInt32, kUInt8}) {
    CAPTURE(std::string(name(dtype)));
    const Tensor x = ones({3}, dtype);
    CHECK(where(yes, x, 5).dtype() == dtype);
    CHECK(where(yes, true, x).dtype() == dtype);
    CHECK(where(yes, x, 5.0).dtype() == kFloat32);
    CHECK(where(yes, 5.0, x).dtype() == kFloat32);
  }
  CHECK(where(yes, ones({3}, kBool), true).dtype() == kBool);
  CHECK(where(yes, ones({3}, kBool), 1).dtype() == kInt64);
  CHECK(where(yes, ones({3}, kBool), 1.0).dtype() == kFloat32);
  CHECK(where(yes, 1, false).dtype() == kInt64);
  CHECK(where(yes, ones({3}, kFloat16), 0.5).dtype() == kFloat16);
}

}  // namespace brigade::test::where_test
