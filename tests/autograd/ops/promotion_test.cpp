// Operands of different dtypes and shapes: each gets a gradient of its own dtype and shape.
#include <near.h>

#include <brigade/autograd/functional.h>
#include <brigade/autograd/ops/loss.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <string>

namespace brigade::test::promotion_test {
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

// Multiples of 0.5, which every floating dtype represents exactly; no element of x equals one of y.
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

TEST_CASE("the dtype of a result: dimensions before none, floats before integers before bool") {
  // Rows: a tensor with dimensions; columns: one without. As in PyTorch 2.15.
  const DType all[] = {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kUInt8, kBool};
  const auto expected = [&](DType with, DType without) {
    if (is_floating_point(with)) return with;
    if (is_floating_point(without)) return without;
    return with == kBool ? without : with;
  };
  for (const DType with : all) {
    for (const DType without : all) {
      CAPTURE(std::string(name(with)));
      CAPTURE(std::string(name(without)));
      const Tensor x = ones({2}, with), number = ones({}, without);
      const DType dtype = expected(with, without);
      CHECK((x * number).dtype() == dtype);
      CHECK((number * x).dtype() == dtype);
      CHECK((x + number).dtype() == dtype);
      CHECK(maximum(x, number).dtype() == dtype);
      CHECK(where(tensor<bool>({true, false}), x, number).dtype() == dtype);
      if (dtype != kBool) CHECK(div(number, x).dtype() == (is_floating_point(dtype) ? dtype : kFloat32));
      if (dtype != kBool) CHECK(remainder(x, number).dtype() == dtype);
      if (is_floating_point(dtype)) CHECK(addcmul(x, number, x).dtype() == dtype);
      CHECK((ones({}, with) * number).dtype() == promote_types(with, without));
    }
  }
}

TEST_CASE("a number without dimensions is compared and computed with in the dtype of the other side") {
  const Tensor x = ones({2});
  CHECK((x * full({}, 0.5, kFloat64)).to_vector<float>() == std::vector<float>{0.5F, 0.5F});
  CHECK(lt(x, full({}, 1.00000000001, kFloat64)).to_vector<bool>() == std::vector<bool>{false, false});
  const Tensor halves = full({2}, 3, kFloat16);
  // The number keeps its precision, and may exceed the range of a half type.
  CHECK((halves * full({}, 0.1, kFloat32)).to_vector<float>()[0] == 0.300048828125F);
  CHECK((halves / full({}, 1e6, kFloat32)).to_vector<float>()[0] == 2.9802322387695312e-06F);
  CHECK((full({}, 1e6, kFloat32) * full({1}, 1e-3, kFloat16)).to_vector<float>()[0] == 1000.5F);
}

TEST_CASE("operands of integers have no gradient, and hinder nobody else's") {
  const auto slopes = [](Tensor (*apply)(const Tensor& whole, const Tensor& x)) {
    const Tensor x = tensor<float>({1, 2, 0.5F}).requires_grad_();
    apply(tensor<int64_t>({2, 3, 0}), x).sum().backward();
    return x.grad();
  };
  // Values of PyTorch 2.15.
  check_near(slopes([](const Tensor& i, const Tensor& x) { return pow(i, x); }), {1.3862944, 9.8875106, 0}, 1e-6);
  check_near(slopes([](const Tensor& i, const Tensor& x) { return pow(x, i); }), {2, 12, 0}, 1e-6);
  check_near(slopes([](const Tensor& i, const Tensor& x) { return atan2(i, x); }), {-0.4, -0.23076923, 0}, 1e-6);
  check_near(slopes([](const Tensor& i, const Tensor& x) { return atan2(x, i); }), {0.4, 0.23076923, 0}, 1e-6);
  check_near(slopes([](const Tensor& i, const Tensor& x) { return fmod(i, x); }), {-2, -1, 0}, 1e-6);
  check_near(slopes([](const Tensor& i, const Tensor& x) { return remainder(i, x); }), {-2, -1, 0}, 1e-6);
  check_near(slopes([](const Tensor& i, const Tensor& x) { return div(i, x); }), {-2, -0.75, 0}, 1e-6);
  check_near(slopes([](const Tensor& i, const Tensor& x) { return addcmul(i, x, x); }), {2, 4, 1}, 1e-6);
  check_near(slopes([](const Tensor& i, const Tensor& x) { return addcdiv(x, i, x); }), {-1, 0.25, 1}, 1e-6);
}

TEST_CASE("a loss outside of autocast takes its target in another dtype, and each side gets a gradient of its own") {
  using Loss = Tensor (*)(const Tensor& x, const Tensor& target);
  const std::pair<const char*, Loss> losses[] = {
      {"mse_loss", [](const Tensor& x, const Tensor& z) { return mse_loss(x, z); }},
      {"l1_loss", [](const Tensor& x, const Tensor& z) { return l1_loss(x, z); }},
      {"smooth_l1_loss", [](const Tensor& x, const Tensor& z) { return smooth_l1_loss(x, z); }},
      {"huber_loss", [](const Tensor& x, const Tensor& z) { return huber_loss(x, z); }},
      {"binary_cross_entropy_with_logits",
       [](const Tensor& x, const Tensor& z) { return binary_cross_entropy_with_logits(x, z); }},
      {"kl_div", [](const Tensor& x, const Tensor& z) { return kl_div(x, z, KLDivReduction::BatchMean); }},
      {"kl_div of logarithms",
       [](const Tensor& x, const Tensor& z) { return kl_div(x, z, KLDivReduction::Sum, true); }},
      {"cross_entropy", [](const Tensor& x, const Tensor& z) { return cross_entropy(x, z); }},
  };
  // Inputs that bfloat16 represents exactly, and a target that it does not.
  const std::vector<double> given{0.25, -0.5, 1.75, 0.5, 0.125, -0.25}, wanted{0.1, 0.7, 0.2, 0.3, 0.6, 0.1};
  const auto leaf = [](const std::vector<double>& values, DType dtype) {
    return tensor<double>(values, {2, 3}).to(kFloat32).to(dtype).requires_grad_();
  };
  for (const auto& [name, loss] : losses) {
    CAPTURE(std::string(name));
    const Tensor x = leaf(given, kBFloat16), z = leaf(wanted, kFloat32);
    const Tensor exact_x = leaf(given, kFloat64), exact_z = leaf(wanted, kFloat64);
    const Tensor y = loss(x, z), exact = loss(exact_x, exact_z);
    CHECK(y.dtype() == kFloat32);
    check_near(y, exact.to_vector<double>(), 1e-6);
    y.backward();
    exact.backward();
    CHECK(x.grad().dtype() == kBFloat16);
    CHECK(z.grad().dtype() == kFloat32);
    check_near(x.grad(), exact_x.grad().to_vector<double>(), 1.0 / 256);
    check_near(z.grad(), exact_z.grad().to_vector<double>(), 1e-6);
    CHECK(loss(z, x).dtype() == kFloat32);
  }
  const Tensor x = ones({2, 3});
  CHECK(mse_loss(x, zeros({2, 3}, kInt64)).item() == 1);
  CHECK(l1_loss(zeros({2, 3}, kInt32), x.to(kBFloat16)).dtype() == kBFloat16);
  CHECK(cross_entropy(x.to(kBFloat16), x.to(kBFloat16), {.weight = ones({3})}).dtype() == kFloat32);
  CHECK(cross_entropy(x.to(kBFloat16), x.to(kBFloat16)).dtype() == kBFloat16);
}

TEST_CASE("a dtype that a loss does not take is called one") {
  const Tensor x = full({2}, 0.5), whole = ones({2}, kInt64);
  const auto refused = [](auto call) {
    try {
      call();
    } catch (const DTypeError& error) {
      return std::string(error.what());
    }
    return std::string("no DTypeError");
  };
  // PyTorch refuses these too.
  CHECK(refused([&] {
          binary_cross_entropy(x, x.to(kBFloat16));
        }).starts_with("binary_cross_entropy: expected a target of the input's dtype float32, got bfloat16"));
  CHECK(refused([&] { binary_cross_entropy(x, whole); }).find("got int64") != std::string::npos);
  CHECK(refused([&] { binary_cross_entropy_with_logits(x, whole); }).find("got int64") != std::string::npos);
  CHECK(refused([&] { kl_div(x, whole); }).find("got int64") != std::string::npos);
  CHECK(refused([&] { mse_loss(whole, whole); }).find("expected a floating dtype, got int64") != std::string::npos);
  CHECK_THROWS_AS(mse_loss(x, ones({2, 2})), ShapeError);
}

}  // namespace brigade::test::promotion_test
