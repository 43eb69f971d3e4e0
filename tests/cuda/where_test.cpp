// CUDA kernels of where, clamp, ternary and lerp, compared with the CPU's: every dtype and layout.
#include "on_device.h"

#include <brigade/kernels/elementwise.h>

namespace brigade::test::where_test {
using namespace brigade::kernels;

TEST_CASE("where: every dtype; dense, broadcast, strided and unaligned operands, numbers on either side") {
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    for (const int64_t size : {0, 1, 15, 4096, 5003}) {
      const Tensor condition = compare_scalar(numbers({size}, kFloat32, 3), 0.5, CompareOp::Less);
      const Tensor a = numbers({size}, dtype, 1);
      const Tensor b = numbers({size}, dtype, 2);
      CHECK(difference(kernels::where(on_device(condition), on_device(a), on_device(b)),
                       kernels::where(condition, a, b)) == 0);
      CHECK(difference(kernels::where(on_device(condition), on_device(a), 1.0), kernels::where(condition, a, 1.0)) ==
            0);
      CHECK(difference(kernels::where(on_device(condition), 0.0, on_device(b)), kernels::where(condition, 0.0, b)) ==
            0);
      CHECK(difference(kernels::where(shifted(on_device(condition), 1), on_device(a), shifted(on_device(b), 1)),
                       kernels::where(condition, a, b)) == 0);
    }
    const Tensor condition = compare_scalar(numbers({7, 1, 33}, kFloat32, 3), 0.5, CompareOp::Less);
    const Tensor a = numbers({5, 1}, dtype, 1);
    const Tensor b = numbers({33, 5}, dtype, 2);
    CHECK(difference(kernels::where(on_device(condition), on_device(a), view::transpose(on_device(b), 0, 1)),
                     kernels::where(condition, a, view::transpose(b, 0, 1))) == 0);
    CHECK(difference(kernels::where(on_device(condition), on_device(a), 1.0), kernels::where(condition, a, 1.0)) == 0);
    CHECK(difference(kernels::where(on_device(condition), 1.0, on_device(a)), kernels::where(condition, 1.0, a)) == 0);
  }
  const Tensor condition = on_device(ones({2}, kBool));
  CHECK(difference(kernels::where(condition, 2.0, 3.0), full({2}, 2.0)) == 0);
  CHECK_THROWS_WITH_AS(kernels::where(condition, ones({2}), 0.0), doctest::Contains("must be on one device"),
                       DeviceError);
}

TEST_CASE("clamp and its gradient: every dtype and layout") {
  const std::vector<Borders> all{{-1, 2}, {-1, std::nullopt}, {std::nullopt, 2}};
  for (const DType dtype : kAllDTypes) {
    if (dtype == kBool) continue;
    CAPTURE(name(dtype));
    for (const Borders& borders : all) {
      for (const int64_t size : {0, 1, 5003}) {
        const Tensor x = numbers({size}, dtype);
        CHECK(difference(clamp(on_device(x), borders), clamp(x, borders)) == 0);
        if (!is_floating_point(dtype)) continue;
        const Tensor grad = numbers({size}, dtype, 2);
        CHECK(difference(clamp_backward(on_device(grad), on_device(x), borders), clamp_backward(grad, x, borders)) ==
              0);
      }
      const Tensor wide = numbers({9, 65}, dtype);
      const Tensor turned = view::transpose(wide, 0, 1);
      CHECK(difference(clamp(view::transpose(on_device(wide), 0, 1), borders), clamp(turned, borders)) == 0);
      if (!is_floating_point(dtype)) continue;
      const Tensor grad = numbers({65, 9}, dtype, 2);
      CHECK(difference(clamp_backward(on_device(grad), view::transpose(on_device(wide), 0, 1), borders),
                       clamp_backward(grad, turned, borders)) == 0);
    }
  }
  CHECK_THROWS_AS(clamp_backward(on_device(ones({3})), on_device(ones({4})), {0, 1}), ShapeError);
}

TEST_CASE("addcmul, addcdiv and lerp: every floating dtype and layout") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    const double bound = 4 * tolerance(dtype);  // with or without fused multiply-add
    for (const int64_t size : {0, 1, 4099}) {
      const Tensor a = numbers({size}, dtype, 1);
      const Tensor b = numbers({size}, dtype, 2);
      const Tensor c = binary_scalar(unary(numbers({size}, dtype, 3), UnaryOp::Abs), 1, BinaryOp::Add, false);
      for (const TernaryOp op : {TernaryOp::Addcmul, TernaryOp::Addcdiv, TernaryOp::Lerp}) {
        CAPTURE(static_cast<int>(op));
        const Tensor expected = ternary(a, b, c, op, 0.5);
        // Terms may cancel: the error is relative to the largest of them.
        const Tensor found = ternary(on_device(a), on_device(b), on_device(c), op, 0.5);
        CHECK(difference(found, expected) <= 16 * bound);
        CHECK(difference(ternary(shifted(on_device(a), 1), on_device(b), on_device(c), op, 0.5), expected) <=
              16 * bound);
      }
      for (const double weight : {0.25, 0.75})
        CHECK(difference(lerp(on_device(a), on_device(b), weight), lerp(a, b, weight)) <= bound);
    }
    const Tensor a = numbers({5, 1, 33}, dtype, 1);
    const Tensor b = numbers({7, 1}, dtype, 2);
    CHECK(difference(ternary(on_device(a), on_device(b), on_device(a), TernaryOp::Addcmul, 2),
                     ternary(a, b, a, TernaryOp::Addcmul, 2)) <= 16 * bound);
    CHECK(difference(lerp(on_device(a), on_device(b), 0.25), lerp(a, b, 0.25)) <= bound);
  }
  const Tensor x = on_device(ones({2}));
  CHECK_THROWS_AS(ternary(x, x, ones({2}), TernaryOp::Lerp, 1), DeviceError);
  CHECK_THROWS_AS(lerp(x, on_device(ones({3})), 0.5), ShapeError);
}

}  // namespace brigade::test::where_test
