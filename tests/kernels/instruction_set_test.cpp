// The selected instruction set, and results that every instruction set must give: special values at every position of a
// vector, and bit-exact conversions of halves. CTest runs all tests of this folder with each instruction set.
#include <brigade/core/half.h>
#include <brigade/kernels/activation.h>
#include <brigade/kernels/common/elementwise_functors.h>
#include <brigade/kernels/cpu/vector/elementwise.h>

#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/kernel.h>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::test::instruction_set_test {
using namespace brigade::kernels;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNaN = std::numeric_limits<float>::quiet_NaN();

// Both NaN, the same infinity, zeros of the same sign, or numbers close to each other.
bool is_alike(float found, double expected) {
  if (std::isnan(expected)) return std::isnan(found);
  const auto rounded = static_cast<float>(expected);
  if (std::isinf(rounded) || rounded == 0) return found == rounded && std::signbit(found) == std::signbit(rounded);
  return std::abs(static_cast<double>(found) - expected) <= 4e-7 * std::abs(expected) + 1e-45;
}

// Applies f to x at each of 37 positions, which covers every lane of vectors of any length and the tail.
void check_everywhere(const std::string& what, float x, double expected,
                      const std::function<Tensor(const Tensor&)>& f) {
  constexpr int64_t kPlaces = 37;
  std::vector<float> values(kPlaces, 0.5F);
  const float usual = f(tensor(values, {kPlaces})).to_vector<float>()[0];
  for (size_t place = 0; place < values.size(); ++place) {
    values[place] = x;
    const auto found = f(tensor(values, {kPlaces})).to_vector<float>();
    values[place] = 0.5F;
    CHECK_MESSAGE(is_alike(found[place], expected),
                  what << " of " << x << " at place " << place << " is " << found[place] << " instead of " << expected);
    const size_t other = (place + 1) % values.size();
    CHECK_MESSAGE(is_alike(found[other], static_cast<double>(usual)), what << ": a neighbour of " << x << " changed");
  }
}

}  // namespace

TEST_CASE("the instruction set is one of those that are compiled, and the one that BRIGADE_CPU names") {
  const std::string_view chosen = instruction_set();
  bool is_known = false;
  for (const char* name : {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "neon", "portable"})
    is_known = is_known || chosen == name;
  CHECK(is_known);
  const char* const wanted = std::getenv("BRIGADE_CPU");
  if (wanted && *wanted) CHECK(chosen == wanted);
}

TEST_CASE("elementary functions of infinities, NaN, zeros and subnormal numbers are the standard library's") {
  for (const float x : {kInf, -kInf, kNaN, 0.0F, -0.0F, 1e-45F, -1e-45F, 1e-40F, 1.0F, -1.0F, 3.4e38F, -3.4e38F}) {
    for (int f = 0; f < kFunctions; ++f) {
      double expected = 0;
      with_function(Function(f), [&](auto functor) { expected = functor(static_cast<double>(x)); });
      check_everywhere("function " + std::to_string(f), x, expected,
                       [f](const Tensor& t) { return function(t, Function(f)); });
    }
    const auto v = static_cast<double>(x);
    const auto unary_op = [](UnaryOp op) { return [op](const Tensor& t) { return unary(t, op); }; };
    check_everywhere("exp", x, std::exp(v), unary_op(UnaryOp::Exp));
    check_everywhere("log", x, std::log(v), unary_op(UnaryOp::Log));
    check_everywhere("sqrt", x, std::sqrt(v), unary_op(UnaryOp::Sqrt));
    check_everywhere("abs", x, std::fabs(v), unary_op(UnaryOp::Abs));
    check_everywhere("neg", x, -v, unary_op(UnaryOp::Neg));
  }
}

TEST_CASE("activations and their gradients of infinities, NaN, zeros and large numbers are PyTorch's") {
  struct Case {
    const char* name;
    std::function<Tensor(const Tensor&)> forward, backward;  // backward for gradients of 1
    std::vector<double> values, slopes;                      // at the inputs below
  };
  const std::vector<float> inputs{kInf, -kInf, kNaN, -0.0F, 50, -50};
  const auto by_x = [](auto backward) { return [=](const Tensor& x) { return backward(ones_like(x), x); }; };
  const auto by_result = [](auto forward, auto backward) {
    return [=](const Tensor& x) { return backward(ones_like(x), forward(x)); };
  };
  const auto gelu_of = [](bool tanh_approximation) {
    return [=](const Tensor& x) { return gelu(x, tanh_approximation); };
  };
  const auto gelu_slope = [](bool tanh_approximation) {
    return [=](const Tensor& grad, const Tensor& x) { return gelu_backward(grad, x, tanh_approximation); };
  };
  const double inf = INFINITY;
  const double nan = NAN;
  const std::vector<Case> cases{
      {"gelu", gelu_of(false), by_x(gelu_slope(false)), {inf, nan, nan, -0.0, 50, -0.0}, {nan, nan, nan, 0.5, 1, 0}},
      {"gelu tanh", gelu_of(true), by_x(gelu_slope(true)), {inf, nan, nan, -0.0, 50, -0.0}, {nan, nan, nan, 0.5, 1, 0}},
      {"silu",
       [](const Tensor& x) { return silu(x); },
       by_x([](const Tensor& g, const Tensor& x) { return silu_backward(g, x); }),
       {inf, nan, nan, -0.0, 50, -9.643749e-21},
       {nan, nan, nan, 0.5, 1, -9.450874e-21}},
      {"tanh",
       [](const Tensor& x) { return kernels::tanh(x); },
       by_result([](const Tensor& x) { return kernels::tanh(x); },
                 [](const Tensor& g, const Tensor& y) { return tanh_backward(g, y); }),
       {1, -1, nan, -0.0, 1, -1},
       {0, 0, nan, 1, 0, 0}},
      {"sigmoid",
       [](const Tensor& x) { return sigmoid(x); },
       by_result([](const Tensor& x) { return sigmoid(x); },
                 [](const Tensor& g, const Tensor& y) { return sigmoid_backward(g, y); }),
       {1, 0, nan, 0.5, 1, 1.92874979e-22},
       {0, 0, nan, 0.25, 0, 1.92874979e-22}},
      {"relu",
       [](const Tensor& x) { return relu(x); },
       by_result([](const Tensor& x) { return relu(x); },
                 [](const Tensor& g, const Tensor& y) { return relu_backward(g, y); }),
       {inf, 0, nan, -0.0, 50, 0},
       {1, 0, 1, 0, 1, 0}}};
  for (const Case& each : cases) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      check_everywhere(each.name, inputs[i], each.values[i], each.forward);
      check_everywhere(std::string(each.name) + " backward", inputs[i], each.slopes[i], each.backward);
    }
  }
}

TEST_CASE("maximum, minimum and arithmetic with NaN and infinities, at every place") {
  const auto with = [](BinaryOp op, float other) {
    return [=](const Tensor& x) { return binary(x, full_like(x, static_cast<double>(other)), op); };
  };
  for (const BinaryOp op : {BinaryOp::Maximum, BinaryOp::Minimum, BinaryOp::Add, BinaryOp::Mul}) {
    check_everywhere("an operation with NaN", kNaN, NAN, with(op, 1.0F));
    check_everywhere("an operation with NaN on the right", 1.0F, NAN, with(op, kNaN));
  }
  check_everywhere("maximum", -kInf, 2, with(BinaryOp::Maximum, 2));
  check_everywhere("minimum", kInf, 2, with(BinaryOp::Minimum, 2));
  check_everywhere("quotient", 1, INFINITY, with(BinaryOp::Div, 0.0F));
}

TEST_CASE("every half and bfloat16 becomes the float32 that it stands for") {
  std::vector<float16> halves;
  std::vector<bfloat16> brains;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    halves.push_back(std::bit_cast<float16>(static_cast<uint16_t>(bits)));
    brains.push_back(std::bit_cast<bfloat16>(static_cast<uint16_t>(bits)));
  }
  std::vector<float> wide(halves.size());
  const auto wrong = [&](const auto& from) {
    cpu::widen(from.data(), wide.data(), static_cast<int64_t>(from.size()));
    int count = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      const auto expected = static_cast<float>(from[i]);
      count += std::isnan(expected) ? !std::isnan(wide[i])
                                    : std::bit_cast<uint32_t>(expected) != std::bit_cast<uint32_t>(wide[i]);
    }
    return count;
  };
  CHECK(wrong(halves) == 0);
  CHECK(wrong(brains) == 0);
}

TEST_CASE("float32 numbers are rounded to halves and bfloat16 as one by one: ties to even, overflow, subnormal, NaN") {
  std::vector<float> values;
  for (uint64_t bits = 0; bits <= 0xFFFFFFFF; bits += 9973)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  // Midpoints between adjacent halves and between adjacent bfloat16 numbers, and the numbers next to them.
  for (uint32_t high = 0; high < 0x10000; high += 7) {
    for (const uint32_t low :
         {0x0FFFU, 0x1000U, 0x1001U, 0x2FFFU, 0x3000U, 0x3001U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU})
      values.push_back(std::bit_cast<float>(high << 16 | low));
  }
  const auto n = static_cast<int64_t>(values.size());
  const auto wrong = [&](auto type) {
    using T = decltype(type);
    std::vector<T> found(values.size());
    cpu::narrow(values.data(), found.data(), n);
    int count = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const T expected(values[i]);
      count += std::isnan(static_cast<float>(expected)) ? !std::isnan(static_cast<float>(found[i]))
                                                        : expected.bits != found[i].bits;
    }
    return count;
  };
  CHECK(wrong(float16()) == 0);
  CHECK(wrong(bfloat16()) == 0);
}

}  // namespace brigade::test::instruction_set_test
