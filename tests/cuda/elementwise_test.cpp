// CUDA kernels of elementwise.h, compared with the CPU's: every operation and dtype, sizes around a vector, a block,
// and a grid; dense, strided, broadcast, unaligned, and empty operands.
#include "on_device.h"

#include <brigade/kernels/common/elementwise_functors.h>

namespace brigade::test::elementwise_test {
using namespace brigade::kernels;

namespace {

const std::vector<BinaryOp> kBinary{BinaryOp::Add, BinaryOp::Sub,     BinaryOp::Mul,
                                    BinaryOp::Div, BinaryOp::Maximum, BinaryOp::Minimum};
const std::vector<CompareOp> kCompare{CompareOp::Equal,     CompareOp::NotEqual, CompareOp::Less,
                                      CompareOp::LessEqual, CompareOp::Greater,  CompareOp::GreaterEqual};

bool is_defined(BinaryOp op, DType dtype) { return dtype != kBool || (op != BinaryOp::Sub && op != BinaryOp::Div); }

// Integer operands are divided in float32, so a divisor of 0 is harmless. Only the sizes matter here.
const std::vector<int64_t> kSizes{0, 1, 3, 255, 1024, 4096, 4097, 16384 + 5};

// The same values with gaps in between.
Tensor strided_on_device(const Tensor& x) {
  Shape sizes = x.sizes();
  sizes.push_back(3);
  const Tensor wide = empty(sizes, {x.dtype(), kDevice});
  fill(wide, 1);
  const Tensor every_third = view::select(wide, sizes.size() - 1, 1);
  copy(every_third, x);
  return every_third;
}

}  // namespace

TEST_CASE("binary operations: every dtype and size") {
  for (const DType dtype : kAllDTypes) {
    for (const int64_t size : kSizes) {
      const Tensor a = numbers({size}, dtype, 1);
      const Tensor b = numbers({size}, dtype, 2);
      for (const BinaryOp op : kBinary) {
        if (!is_defined(op, dtype)) continue;
        CAPTURE(name(dtype));
        CAPTURE(size);
        CAPTURE(static_cast<int>(op));
        CHECK(difference(binary(on_device(a), on_device(b), op), binary(a, b, op)) <= tolerance(dtype));
        CHECK(difference(binary_scalar(on_device(a), 2, op, false), binary_scalar(a, 2, op, false)) <=
              tolerance(dtype));
        CHECK(difference(binary_scalar(on_device(a), 3, op, true), binary_scalar(a, 3, op, true)) <=
              tolerance(dtype == kBool || is_floating_point(dtype) ? dtype : kFloat32));
      }
      for (const CompareOp op : kCompare) {
        CAPTURE(name(dtype));
        CAPTURE(size);
        CAPTURE(static_cast<int>(op));
        CHECK(difference(compare(on_device(a), on_device(b), op), compare(a, b, op)) == 0);
        CHECK(difference(compare_scalar(on_device(a), 0.5, op), compare_scalar(a, 0.5, op)) == 0);
        CHECK(difference(compare_scalar(on_device(a), 1, op), compare_scalar(a, 1, op)) == 0);
      }
    }
  }
}

TEST_CASE("binary operations broadcast, and take strided, transposed and unaligned operands") {
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    const Tensor x = numbers({5, 33}, dtype, 1);
    const Tensor y = numbers({33}, dtype, 2);
    for (const BinaryOp op : kBinary) {
      if (!is_defined(op, dtype)) continue;
      CAPTURE(static_cast<int>(op));
      CHECK(difference(binary(strided_on_device(x), on_device(y), op), binary(x, y, op)) <= tolerance(dtype));
      CHECK(difference(binary_scalar(strided_on_device(x), 2, op, false), binary_scalar(x, 2, op, false)) <=
            tolerance(dtype));
    }
    for (const CompareOp op : kCompare) {
      CAPTURE(static_cast<int>(op));
      CHECK(difference(compare(strided_on_device(x), on_device(y), op), compare(x, y, op)) == 0);
      CHECK(difference(compare_scalar(strided_on_device(x), 0.5, op), compare_scalar(x, 0.5, op)) == 0);
      CHECK(difference(compare_scalar(strided_on_device(x), 1, op), compare_scalar(x, 1, op)) == 0);
    }
  }
  for (const DType dtype : {kFloat32, kBFloat16, kInt64}) {
    CAPTURE(name(dtype));
    const Tensor a = numbers({5, 1, 7, 33}, dtype, 1);
    const Tensor b = numbers({6, 1, 33}, dtype, 2);
    const Tensor expected = binary(a, b, BinaryOp::Sub);
    CHECK(difference(binary(on_device(a), on_device(b), BinaryOp::Sub), expected) == 0);
    CHECK(difference(binary(strided_on_device(a), strided_on_device(b), BinaryOp::Sub), expected) == 0);
    CHECK(difference(compare(strided_on_device(a), on_device(b), CompareOp::Less), compare(a, b, CompareOp::Less)) ==
          0);
    const Tensor square = numbers({65, 65}, dtype, 3);
    CHECK(difference(binary(view::transpose(on_device(square), 0, 1), on_device(square), BinaryOp::Add),
                     binary(view::transpose(square, 0, 1), square, BinaryOp::Add)) == 0);
    // Dense, but unaligned.
    const Tensor long_one = numbers({5001}, dtype, 4);
    const Tensor late = view::slice(on_device(long_one), 0, 1, 5001);
    CHECK(difference(binary(late, late, BinaryOp::Mul),
                     binary(view::slice(long_one, 0, 1, 5001), view::slice(long_one, 0, 1, 5001), BinaryOp::Mul)) <=
          tolerance(dtype));
  }
  const Tensor x = on_device(ones({2}));
  CHECK_THROWS_WITH_AS(binary(x, ones({2}), BinaryOp::Add),
                       doctest::Contains("both tensors must be on one device, got cuda:0 and cpu"), DeviceError);
  CHECK_THROWS_AS(binary(x, on_device(ones({3})), BinaryOp::Add), ShapeError);
}

TEST_CASE("unary operations, and a NaN stays one") {
  for (int op = 0; op < 8; ++op) {
    CAPTURE(op);
    for (const DType dtype : kFloatingDTypes) {
      CAPTURE(name(dtype));
      for (const int64_t size : {int64_t{1}, int64_t{4099}}) {
        const Tensor x = numbers({size}, dtype);  // half are negative, so Log and Sqrt give NaN
        const double bound = dtype == kFloat32 ? 1e-5 : tolerance(dtype);  // error of expf
        CHECK(difference(unary(on_device(x), UnaryOp(op)), unary(x, UnaryOp(op))) <= bound);
        CHECK(difference(unary(strided_on_device(x), UnaryOp(op)), unary(x, UnaryOp(op))) <= bound);
      }
    }
    if (takes_integers(UnaryOp(op))) {
      for (const DType dtype : {kInt64, kInt32, kUInt8}) {
        const Tensor x = numbers({70}, dtype);
        CHECK(difference(unary(on_device(x), UnaryOp(op)), unary(x, UnaryOp(op))) == 0);
        CHECK(difference(unary(strided_on_device(x), UnaryOp(op)), unary(x, UnaryOp(op))) == 0);
      }
    } else {
      CHECK_THROWS_AS(unary(on_device(zeros({2}, kInt64)), UnaryOp(op)), DTypeError);
    }
  }
}

TEST_CASE("numbers that uint8 does not hold wrap around, bool has a square and a sign, and -0 an absolute value of 0") {
  const Tensor x = numbers({70}, kUInt8);
  for (const double number : {-1.0, 300.0}) {
    for (const BinaryOp op : {BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul})
      CHECK(difference(binary_scalar(on_device(x), number, op, false), binary_scalar(x, number, op, false)) == 0);
  }
  const Tensor truths = numbers({70}, kBool);
  for (const UnaryOp op : {UnaryOp::Square, UnaryOp::Sign})
    CHECK(difference(unary(on_device(truths), op), unary(truths, op)) == 0);
  CHECK_THROWS_AS(unary(on_device(truths), UnaryOp::Neg), DTypeError);
  for (const double value : on_cpu(unary(on_device(full({70}, -0.0)), UnaryOp::Abs)).to_vector<double>())
    CHECK_FALSE(std::signbit(value));
}

TEST_CASE("copies cast between all dtypes, dense and strided, within the device and from and to the CPU") {
  for (const DType from : kAllDTypes) {
    for (const DType to : kAllDTypes) {
      CAPTURE(name(from));
      CAPTURE(name(to));
      // Small and nonnegative, so that every dtype can represent the values.
      const Tensor x = cast(unary(numbers({3, 5, 41}, kFloat64), UnaryOp::Abs), from);
      const Tensor expected = cast(x, to);
      CHECK(difference(cast(on_device(x), to), expected) == 0);
      CHECK(difference(cast(strided_on_device(x), to), expected) == 0);
      const Tensor back = empty(x.sizes(), to);
      copy(back, on_device(x));
      CHECK(back.to_vector<double>() == expected.to_vector<double>());
      const Tensor transposed = view::transpose(empty({3, 41, 5}, to), 1, 2);
      copy(transposed, on_device(x));
      CHECK(transposed.to_vector<double>() == expected.to_vector<double>());
    }
  }
  const Tensor row = on_device(numbers({7}, kFloat32));
  const Tensor all = empty({4, 7}, {kFloat32, kDevice});
  copy(all, row);
  CHECK(difference(view::select(all, 0, 3), on_cpu(row)) == 0);
  CHECK_THROWS_WITH_AS(copy(row, all), doctest::Contains("does not broadcast to the target's shape [7]"), ShapeError);
}

TEST_CASE("fill, and sums and products in place") {
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{5003}}) {
      const Tensor x = numbers({size}, dtype, 1);
      const Tensor y = numbers({size}, dtype, 2);
      const auto both = [&](const auto& change) {
        const Tensor here = clone(x);
        const Tensor dense = on_device(x);
        const Tensor strided = strided_on_device(x);
        change(here, y);
        change(dense, on_device(y));
        change(strided, on_device(y));
        CHECK(difference(dense, here) <= tolerance(dtype));
        CHECK(difference(strided, here) <= tolerance(dtype));
      };
      both([](const Tensor& a, const Tensor&) { fill(a, 1); });
      both([](const Tensor& a, const Tensor& b) { add_inplace(a, b, 1); });
      both([](const Tensor& a, const Tensor& b) { add_inplace(a, b, 3); });
      both([](const Tensor& a, const Tensor& b) { mul_inplace(a, b); });
      both([](const Tensor& a, const Tensor&) { scale_inplace(a, 2); });
    }
  }
  // Memory around the target must stay unchanged.
  const Tensor wide = on_device(zeros({5000}));
  fill(view::slice(wide, 0, 3, 4998), 2);
  const auto values = on_cpu(wide).to_vector<float>();
  CHECK(values[2] == 0);
  CHECK(values[3] == 2);
  CHECK(values[4997] == 2);
  CHECK(values[4998] == 0);
}

TEST_CASE("ranges and unit matrices are made where the options say") {
  const Tensor range = arange(1, 4, 1, {kFloat32, kDevice}), unit = eye(2, {kFloat64, kDevice});
  CHECK(range.device() == kDevice);
  CHECK(unit.device() == kDevice);
  CHECK(on_cpu(range).to_vector<float>() == std::vector<float>{1, 2, 3});
  CHECK(on_cpu(unit).to_vector<double>() == std::vector<double>{1, 0, 0, 1});
}

}  // namespace brigade::test::elementwise_test
