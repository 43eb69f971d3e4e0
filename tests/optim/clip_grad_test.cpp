#include <optim/reference.h>

namespace brigade::test::clip_grad_test {

Tensor with_gradient(const std::vector<double>& gradient, DType dtype = kFloat64) {
  const Shape sizes{static_cast<int64_t>(gradient.size())};
  const Tensor p = zeros(sizes, dtype).requires_grad_();
  p.set_grad(tensor(gradient, sizes).to(dtype));
  return p;
}
TEST_CASE("clip_grad_norm_ scales all gradients by the norm of all together") {
  struct Case {
    double norm_type, total;
  };
  for (const Case& c : {Case{1, 19}, Case{2, 13}, Case{INFINITY, 12}}) {
    CAPTURE(c.norm_type);
    const Tensor a = with_gradient({3, -4});
    const Tensor b = with_gradient({-12});
    const Tensor idle = zeros({2}).requires_grad_();
    const uint32_t version = b.grad().version();
    CHECK(optim::clip_grad_norm_({a, idle, b}, 2.0, {.norm_type = c.norm_type}) == doctest::Approx(c.total));
    const double factor = 2.0 / (c.total + 1e-6);
    CHECK(a.grad().to_vector<double>()[1] == doctest::Approx(-4 * factor).epsilon(1e-12));
    CHECK(b.grad().to_vector<double>()[0] == doctest::Approx(-12 * factor).epsilon(1e-12));
    CHECK(b.grad().version() > version);
  }
}

TEST_CASE("the norm and the clipping by it, apart, do what clip_grad_norm_ does") {
  for (const double norm_type :
       {1.0, 2.0, static_cast<double>(INFINITY), 0.0, 0.5, 3.0, -1.0, -2.5, -static_cast<double>(INFINITY)}) {
    for (const double max_norm : {2.0, 100.0}) {
      CAPTURE(norm_type);
      CAPTURE(max_norm);
      const auto parameters = [] {
        return std::vector<Tensor>{with_gradient({3, -4}), with_gradient({-12}, kFloat32),
                                   with_gradient({1, 1}, kFloat16)};
      };
      const auto together = parameters(), apart = parameters();
      const double expected = optim::clip_grad_norm_(together, max_norm, {.norm_type = norm_type});
      std::vector<Tensor> grads;
      for (const Tensor& each : apart)
        grads.push_back(each.grad());
      const Tensor total = optim::get_total_norm(grads, norm_type);
      CHECK(total.dim() == 0);
      CHECK(total.dtype() == kFloat64);
      CHECK(total.item() == doctest::Approx(expected).epsilon(1e-14));
      const uint32_t version = apart[0].grad().version();
      optim::clip_grads_with_norm_(apart, max_norm, total);
      CHECK(apart[0].grad().version() > version);
      for (size_t i = 0; i < apart.size(); ++i)
        CHECK(apart[i].grad().to_vector<double>() == together[i].grad().to_vector<double>());
    }
  }
  CHECK(optim::get_total_norm({}).item() == 0);
  const Tensor bad = with_gradient({NAN}), good = with_gradient({8}, kFloat32);
  optim::clip_grads_with_norm_({bad, good}, 1, optim::get_total_norm({bad.grad(), good.grad()}));
  CHECK(std::isnan(good.grad().to_vector<double>()[0]));
  CHECK_THROWS_WITH_AS(optim::get_total_norm({}, NAN), doctest::Contains("norm_type is not a number"), ValueError);
  CHECK_THROWS_WITH_AS(optim::clip_grads_with_norm_({good}, -1, full({}, 1.0)),
                       doctest::Contains("max_norm must be at least 0, got -1"), ValueError);
  CHECK_THROWS_WITH_AS(optim::clip_grads_with_norm_({good}, 1, full({}, 1, kInt64)),
                       doctest::Contains("expected a total_norm of float32 or float64"), DTypeError);
  CHECK_THROWS_AS(optim::clip_grads_with_norm_({good}, 1, full({2}, 1.0)), ShapeError);
}

TEST_CASE("total norms of any order are those of all numbers in a row; that of order 0 counts tensors") {
  const std::vector<double> values{3, -4, 0.5, -2, 6, 1.5};
  const std::vector<Tensor> tensors{tensor(std::vector<double>(values.begin(), values.begin() + 3), {3}),
                                    tensor(std::vector<double>(values.begin() + 3, values.end()), {3, 1}).to(kFloat32),
                                    empty({0}, kFloat64)};
  for (const double p : {0.5, 1.0, 2.0, 3.0, 7.5, -1.0, -3.0}) {
    CAPTURE(p);
    double sum = 0;
    for (const double value : values)
      sum += std::pow(std::abs(value), p);
    CHECK(optim::get_total_norm(tensors, p).item() == doctest::Approx(std::pow(sum, 1 / p)).epsilon(1e-13));
  }
  CHECK(optim::get_total_norm(tensors, INFINITY).item() == 6);
  CHECK(optim::get_total_norm(tensors, -INFINITY).item() == 0.5);
  CHECK(optim::get_total_norm(tensors, 0).item() == 2);
  const std::vector<Tensor> with_zeros{tensor(std::vector<double>{0, 2}, {2}), tensor(std::vector<double>{0, 0}, {2})};
  CHECK(optim::get_total_norm(with_zeros, 0).item() == 1);
  CHECK(optim::get_total_norm(with_zeros, -1).item() == 0);
  CHECK(std::isnan(optim::get_total_norm({tensor(std::vector<double>{1, NAN}, {2})}, -INFINITY).item()));
}

TEST_CASE("gradients within the norm are left alone, to the bit") {
  const Tensor p = with_gradient({0.1, 0.2, 0.3}, kFloat32);
  const auto before = p.grad().to_vector<float>();
  const uint32_t version = p.grad().version();
  optim::clip_grad_norm_({p}, 1.0);
  CHECK(p.grad().to_vector<float>() == before);
  CHECK(p.grad().version() == version);
  CHECK(optim::clip_grad_norm_({}, 1.0) == 0);
}

TEST_CASE("gradients of several dtypes have one norm") {
  std::vector<Tensor> parameters;
  for (const DType dtype : {kFloat32, kFloat64, kFloat16, kFloat64}) {
    parameters.push_back(zeros({2}, dtype).requires_grad_());
    parameters.back().set_grad(full({2}, static_cast<double>(parameters.size()), dtype));
  }
  const double norm = std::sqrt(2.0 * (1 + 4 + 9 + 16));
  CHECK(optim::clip_grad_norm_(parameters, norm / 2) == doctest::Approx(norm));
  for (size_t i = 0; i < parameters.size(); ++i)
    CHECK(parameters[i].grad().to_vector<double>()[1] == doctest::Approx(static_cast<double>(i + 1) / 2).epsilon(1e-3));
}

TEST_CASE("the norm of float16 gradients is not taken in float16") {
  const Tensor p = with_gradient({300, 400}, kFloat16);  // 400 * 400 exceeds the largest float16
  CHECK(optim::clip_grad_norm_({p}, 5.0) == doctest::Approx(500));
  CHECK(p.grad().to_vector<float>()[0] == doctest::Approx(3).epsilon(1e-3));
}

TEST_CASE("a norm that is not finite reaches all gradients, or is an error where asked for") {
  for (const double norm_type : {1.0, 2.0, static_cast<double>(INFINITY)}) {
    CAPTURE(norm_type);
    const Tensor bad = with_gradient({1, NAN});
    const Tensor good = with_gradient({8});
    CHECK_THROWS_WITH_AS(optim::clip_grad_norm_({bad, good}, 1.0, {.norm_type = norm_type, .error_if_nonfinite = true}),
                         doctest::Contains("is non-finite, so it cannot be clipped"), ValueError);
    CHECK(good.grad().to_vector<double>()[0] == 8);
    CHECK(std::isnan(optim::clip_grad_norm_({bad, good}, 1.0, {.norm_type = norm_type})));
    CHECK(std::isnan(good.grad().to_vector<double>()[0]));
  }
  CHECK_THROWS_AS(optim::clip_grad_norm_({}, 1.0, {.norm_type = NAN}), ValueError);
  CHECK_THROWS_AS(optim::clip_grad_norm_({}, -1.0), ValueError);
}

TEST_CASE("norms of every order are PyTorch's") {
  struct Case {
    double norm_type, total;
  };
  const double cube = std::cbrt(27.0 + 64 + 1728);
  for (const Case& c : {Case{3, cube}, Case{0.5, std::pow(std::sqrt(3.0) + 2 + std::sqrt(12.0), 2)},
                        Case{-1, 1 / (1.0 / 3 + 0.25 + 1.0 / 12)}, Case{-INFINITY, 3}, Case{0, 2}}) {
    CAPTURE(c.norm_type);
    for (const DType dtype : {kFloat64, kFloat32, kFloat16}) {
      const Tensor a = with_gradient({3, -4}, dtype), b = with_gradient({-12}, dtype),
                   still = with_gradient({0}, dtype);
      std::vector<Tensor> all{a, b};
      if (c.norm_type >= 0) all.push_back(still);
      CHECK(optim::clip_grad_norm_(all, 0.5, {.norm_type = c.norm_type}) == doctest::Approx(c.total).epsilon(1e-12));
      CHECK(b.grad().to_vector<double>()[0] == doctest::Approx(-6 / c.total).epsilon(2e-3));
    }
    const Tensor bad = with_gradient({1, NAN});
    CHECK(std::isnan(optim::clip_grad_norm_({with_gradient({2}), bad}, 1.0, {.norm_type = c.norm_type})) ==
          (c.norm_type != 0));
  }
  // With a zero element, a norm of negative order is 0.
  CHECK(optim::clip_grad_norm_({with_gradient({0, 5})}, 1, {.norm_type = -2}) == 0);
}

TEST_CASE("clip_grad_value_ bounds every element, whatever its dtype and strides") {
  std::vector<Tensor> parameters;
  for (const DType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    parameters.push_back(with_gradient({-3, 0.25, 1.5, -0.5, INFINITY, NAN}, dtype));
    CHECK(parameters.back().grad().version() == 0);
  }
  parameters.push_back(zeros({2}).requires_grad_());  // without a gradient
  optim::clip_grad_value_(parameters, 0.5);
  for (size_t i = 0; i < 4; ++i) {
    const auto g = parameters[i].grad().to_vector<double>();
    CHECK(std::vector<double>(g.begin(), g.begin() + 5) == std::vector<double>{-0.5, 0.25, 0.5, -0.5, 0.5});
    CHECK(std::isnan(g[5]));
    CHECK(parameters[i].grad().version() == 1);
  }
  const Tensor wide = zeros({2, 3}).requires_grad_();
  wide.set_grad(tensor(std::vector<double>{1, 2, 3, 4, 5, 6}, {3, 2}).to(kFloat32).t());
  optim::clip_grad_value_({wide}, 3);
  CHECK(wide.grad().to_vector<double>() == std::vector<double>{1, 3, 3, 2, 3, 3});
  CHECK_THROWS_WITH_AS(optim::clip_grad_value_({wide}, -1), doctest::Contains("clip_value must be at least 0, got -1"),
                       ValueError);
}

}  // namespace brigade::test::clip_grad_test
