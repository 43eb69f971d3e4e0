// Copies, casts and arithmetic in place, against plain loops.
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <vector>

namespace brigade::test::inplace_test {
using namespace brigade::kernels;
using test::at;
using test::numbers;

TEST_CASE("copies cast between all dtypes, through any strides") {
  for (const DType from : test::kEveryDType) {
    for (const DType to : test::kEveryDType) {
      const Tensor source = view::transpose(numbers({3, 4}, from), 0, 1);
      const Tensor memory = zeros({5, 6}, to);
      const Tensor target = view::slice(view::slice(memory, 0, 1, 5), 1, 0, 6, 2);
      copy(target, source);
      for (int64_t i = 0; i < 12; ++i) {
        const double value = at(source, i);
        const double expected = to == kBool ? (value != 0) : to == kUInt8 && value < 0 ? 256 + value : value;
        CAPTURE(name(from));
        CAPTURE(name(to));
        CHECK(at(target, i) == expected);
      }
      CHECK(at(memory, 0) == 0);
    }
  }
  const Tensor x = zeros({2, 3});
  add_inplace(x, tensor<float>({1, 2, 3}), 0.5);
  mul_inplace(x, tensor(std::vector<float>{1, 10}, {2, 1}));
  scale_inplace(x, 2);
  CHECK(x.to_vector<float>() == std::vector<float>{1, 2, 3, 10, 20, 30});
  CHECK_THROWS_AS(add_inplace(x, zeros({2, 2, 3}), 1), ShapeError);
}

}  // namespace brigade::test::inplace_test
