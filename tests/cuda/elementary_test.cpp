// CUDA kernels of the elementary functions and binary_function, compared with the CPU's: every function, dtype, and
// layout.
#include "on_device.h"

#include <brigade/kernels/elementwise.h>

namespace brigade::test::elementary_test {
using namespace brigade::kernels;

namespace {

// Allows for two implementations; float32 on the CPU is within 3 units in the last place.
double function_tolerance(DType dtype) {
  return dtype == kFloat32 ? 4 * 0x1p-23 : dtype == kFloat64 ? 1e-14 : tolerance(dtype);
}

constexpr BinaryFunction kBinary[] = {BinaryFunction::Pow, BinaryFunction::Atan2, BinaryFunction::Remainder,
                                      BinaryFunction::Fmod};

}  // namespace

TEST_CASE("elementary functions: every dtype, dense, strided, unaligned and empty, NaN outside of their domains") {
  for (int f = 0; f < kFunctions; ++f) {
    CAPTURE(f);
    for (const DType dtype : kFloatingDTypes) {
      CAPTURE(name(dtype));
      const double bound = function_tolerance(dtype);
      for (const int64_t size : {0, 1, 5003}) {
        const Tensor x = numbers({size}, dtype);
        CHECK(difference(function(on_device(x), Function(f)), function(x, Function(f))) <= bound);
      }
      const Tensor wide = numbers({9, 65}, dtype);
      CHECK(difference(function(view::transpose(on_device(wide), 0, 1), Function(f)),
                       function(view::transpose(wide, 0, 1), Function(f))) <= bound);
      const Tensor x = numbers({70}, dtype);
      CHECK(difference(function(shifted(on_device(x), 1), Function(f)), function(x, Function(f))) <= bound);
    }
    CHECK_THROWS_AS(function(on_device(zeros({2}, kInt64)), Function(f)), DTypeError);
  }
}

TEST_CASE("functions of two numbers: every dtype, dense, broadcast and strided, beside a number") {
  for (const DType dtype : kAllDTypes) {
    if (dtype == kBool) continue;
    CAPTURE(name(dtype));
    const Tensor a = numbers({5003}, dtype, 1);
    const Tensor b = numbers({5003}, dtype, 2);
    const Tensor column = numbers({7, 1}, dtype, 3);
    const Tensor row = numbers({33}, dtype, 4);
    const Tensor wide = numbers({9, 65}, dtype, 5);
    for (const BinaryFunction f : kBinary) {
      CAPTURE(static_cast<int>(f));
      const double bound = function_tolerance(is_floating_point(dtype) ? dtype : kFloat32);
      CHECK(difference(binary_function(on_device(a), on_device(b), f), binary_function(a, b, f)) <= bound);
      CHECK(difference(binary_function(on_device(column), on_device(row), f), binary_function(column, row, f)) <=
            bound);
      for (const bool reversed : {false, true}) {
        CHECK(difference(binary_function_scalar(on_device(a), 3, f, reversed),
                         binary_function_scalar(a, 3, f, reversed)) <= bound);
        CHECK(difference(binary_function_scalar(view::transpose(on_device(wide), 0, 1), 2, f, reversed),
                         binary_function_scalar(view::transpose(wide, 0, 1), 2, f, reversed)) <= bound);
      }
    }
  }
  const Tensor x = on_device(ones({2}));
  CHECK_THROWS_AS(binary_function(x, ones({2}), BinaryFunction::Pow), DeviceError);
  CHECK_THROWS_AS(binary_function(x, on_device(ones({3})), BinaryFunction::Pow), ShapeError);
  CHECK_THROWS_AS(binary_function_scalar(on_device(ones({2}, kBool)), 2, BinaryFunction::Pow, false), DTypeError);
}

}  // namespace brigade::test::elementary_test
