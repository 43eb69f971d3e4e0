// Activations, compared with the standard library in double.
#include <brigade/kernels/activation.h>
#include <brigade/kernels/cpu/detail/math.h>
#include <brigade/kernels/elementwise.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace brigade::test::activation_test {
using namespace brigade::kernels;
using test::at;
using test::largest_difference;
using test::random;

TEST_CASE("exp, tanh and sigmoid in float32 are within a few units in the last place") {
  double worst_exp = 0;
  double worst_tanh = 0;
  for (double x = -103; x < 88.7; x += 0.00371) {
    const auto v = static_cast<float>(x);
    const double exact = std::exp(static_cast<double>(v));
    worst_exp = test::worse(worst_exp, std::abs(cpu::exp(v) - exact) / std::max(exact * 0x1p-23, 0x1p-149));
    const double exact_tanh = std::tanh(static_cast<double>(v));
    worst_tanh =
        test::worse(worst_tanh, std::abs(cpu::tanh(v) - exact_tanh) / std::max(std::abs(exact_tanh) * 0x1p-23, 1e-45));
  }
  for (double x = -0.3; x < 0.3; x += 1e-5) {
    const double exact_tanh = std::tanh(static_cast<double>(static_cast<float>(x)));
    worst_tanh = test::worse(worst_tanh, std::abs(cpu::tanh(static_cast<float>(x)) - exact_tanh) /
                                             std::max(std::abs(exact_tanh) * 0x1p-23, 1e-45));
  }
  MESSAGE("worst error in ulp: exp " << worst_exp << ", tanh " << worst_tanh);
  CHECK(worst_exp <= 2);
  CHECK(worst_tanh <= 4);
  CHECK(cpu::exp(-1000.0F) == 0);
  CHECK(std::isinf(cpu::exp(1000.0F)));
  CHECK(std::isnan(cpu::exp(std::nanf(""))));
  CHECK(cpu::sigmoid(-200.0F) == 0);
}

TEST_CASE("activations in every floating dtype agree with float64") {
  const Tensor x = random({3, 67}, 1, kFloat64);
  for (const auto& [dtype, tolerance] :
       std::vector<std::pair<DType, double>>{{kFloat32, 1e-6}, {kFloat16, 4e-3}, {kBFloat16, 3e-2}}) {
    const Tensor low = cast(x, dtype);
    const Tensor same = cast(low, kFloat64);
    const Tensor g = cast(random({3, 67}, 2, kFloat64), dtype);
    const Tensor g64 = cast(g, kFloat64);
    const auto check = [&, tol = tolerance](const Tensor& a, const Tensor& b) {
      CHECK(a.dtype() == dtype);
      CHECK(largest_difference(cast(a, kFloat64), b) < tol * 4);
    };
    check(relu(low), relu(same));
    check(gelu(low, false), gelu(same, false));
    check(gelu(low, true), gelu(same, true));
    check(kernels::tanh(low), kernels::tanh(same));
    check(sigmoid(low), sigmoid(same));
    check(silu(low), silu(same));
    check(silu_backward(g, low), silu_backward(g64, same));
    check(leaky_relu(low, 0.1), leaky_relu(same, 0.1));
    check(gelu_backward(g, low, false), gelu_backward(g64, same, false));
    check(gelu_backward(g, low, true), gelu_backward(g64, same, true));
    check(softmax(low, 1), softmax(same, 1));
    check(log_softmax(low, 0), log_softmax(same, 0));
  }
  for (int64_t i = 0; i < x.numel(); i += 17)
    CHECK(at(silu(x), i) == doctest::Approx(at(x, i) / (1 + std::exp(-at(x, i)))));
  CHECK(relu(empty({0, 3})).numel() == 0);
  CHECK(std::isnan(at(relu(tensor<float>({std::nanf("")})), 0)));
}

}  // namespace brigade::test::activation_test
