// Operands of different dtypes and shapes: each gets a gradient like itself.
#include <near.h>

#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <string>

using namespace brigade;
using test::check_near;

namespace {

struct Row {
  const char* name;
  Tensor (*apply)(const Tensor& x, const Tensor& y);
};

const Row kRows[] = {
    {"add", [](const Tensor& x, const Tensor& y) { return add(x, y); }},
    {"sub", [](const Tensor& x, const Tensor& y) { return sub(x, y); }},
    {"mul", [](const Tensor& x, const Tensor& y) { return mul(x, y); }},
    {"div", [](const Tensor& x, const Tensor& y) { return div(x, y); }},
    {"maximum", [](const Tensor& x, const Tensor& y) { return maximum(x, y); }},
    {"minimum", [](const Tensor& x, const Tensor& y) { return minimum(x, y); }},
    {"clamp", [](const Tensor& x, const Tensor& y) { return clamp(x, y - 1.75, y); }},
    {"lerp", [](const Tensor& x, const Tensor& y) { return lerp(x, y, 0.25); }},
    {"addcmul", [](const Tensor& x, const Tensor& y) { return addcmul(y, x, y, 2); }},
    {"addcdiv", [](const Tensor& x, const Tensor& y) { return addcdiv(x, x, y, 2); }},
    {"remainder", [](const Tensor& x, const Tensor& y) { return remainder(y, x); }},
    {"fmod", [](const Tensor& x, const Tensor& y) { return fmod(y, x); }},
    {"pow", [](const Tensor& x, const Tensor& y) { return pow(x, y); }},
    {"atan2", [](const Tensor& x, const Tensor& y) { return atan2(x, y); }},
    {"where", [](const Tensor& x, const Tensor& y) { return where(gt(y, 1.0), x, y); }},
    {"add_", [](const Tensor& x, const Tensor& y) { return (y * 1.0).add_(x, 2); }},
    {"mul_", [](const Tensor& x, const Tensor& y) { return (y * 1.0).mul_(x); }},
    {"sub_", [](const Tensor& x, const Tensor& y) { return sub_(y * 1.0, x); }},
    {"div_", [](const Tensor& x, const Tensor& y) { return div_(y * 1.0, x); }},
    {"copy_", [](const Tensor& x, const Tensor& y) { return (y * 1.0).copy_(x); }},
};

// Both in halves of whole numbers, which every dtype holds; none of x equals one of y.
Tensor small(DType dtype) { return tensor<double>({0.5, 1.5, 2.5}).to(dtype).requires_grad_(); }
Tensor large(DType dtype) { return tensor<double>({1, 2, 3, 3, 1, 2}, {2, 3}).to(dtype).requires_grad_(); }

}  // namespace

TEST_CASE("operands of two dtypes, one of them broadcast, get gradients of their own dtype and shape") {
  for (const Row& row : kRows) {
    CAPTURE(std::string(row.name));
    const Tensor x = small(kFloat64), y = large(kFloat64);
    sum(square(row.apply(x, y))).backward();
    for (const bool smaller_first : {true, false}) {
      CAPTURE(smaller_first);
      const Tensor a = small(smaller_first ? kFloat32 : kFloat64), b = large(smaller_first ? kFloat64 : kFloat32);
      const Tensor result = row.apply(a, b);
      sum(square(result.to(kFloat64))).backward();
      CHECK(a.grad().dtype() == a.dtype());
      CHECK(b.grad().dtype() == b.dtype());
      REQUIRE(a.grad().sizes() == a.sizes());
      REQUIRE(b.grad().sizes() == b.sizes());
      check_near(a.grad(), x.grad().to_vector<double>(), 1e-6);
      check_near(b.grad(), y.grad().to_vector<double>(), 1e-6);
    }
  }
}
