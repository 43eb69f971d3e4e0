// Half types in kernels that do not convert through float32 buffers: results equal the rounded float32 result, or, for
// functions with their own half-precision implementation, lie within one place of it.
#include <brigade/core/view.h>
#include <brigade/kernels/activation.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/matmul.h>
#include <brigade/kernels/normalization.h>
#include <brigade/kernels/reduce.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace brigade::test::halves_test {
using namespace brigade::kernels;
using test::random;

namespace {

Tensor wide(const Tensor& x) { return cast(x, kFloat32); }
// Requires agreement within one place.
void check_near(const Tensor& found, const Tensor& in_float32) {
  REQUIRE(is_half(found.dtype()));
  const Tensor dense = contiguous(found), expected = cast(in_float32, found.dtype());
  const auto* const a = static_cast<const int16_t*>(dense.raw_data());
  const auto* const b = static_cast<const int16_t*>(expected.raw_data());
  for (int64_t i = 0; i < dense.numel(); ++i)
    CHECK(std::abs(a[i] - b[i]) <= 1);
}
void check_same(const Tensor& found, const Tensor& in_float32) {
  REQUIRE(is_half(found.dtype()));
  CHECK(found.to_vector<float>() == cast(in_float32, found.dtype()).to_vector<float>());
}

// The derivative of gelu is a sum of terms with half precision.
void check_slope_of_gelu(const Tensor& grad, const Tensor& x) {
  const auto found = gelu_backward(grad, x, false).to_vector<float>();
  const auto in_float32 = gelu_backward(wide(grad), wide(x), false).to_vector<float>();
  const auto factors = grad.to_vector<float>();
  const float rounding = x.dtype() == kFloat16 ? 0x1p-11F : 0x1p-8F;
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(in_float32[i])) {
      CHECK(std::isnan(found[i]));
    } else {
      CHECK(std::abs(found[i] - in_float32[i]) <=
            rounding * std::abs(in_float32[i]) + 0x1p-16F * std::abs(factors[i]) + 0x1p-24F);
    }
  }
}

Tensor every_half(DType dtype) {
  const Tensor x = empty({65536}, dtype);
  for (int i = 0; i < 65536; ++i)
    static_cast<uint16_t*>(x.raw_data())[i] = static_cast<uint16_t>(i);
  return x;
}

}  // namespace

TEST_CASE("the slope of gelu at every half has the digits of a half") {
  for (const DType dtype : {kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    check_slope_of_gelu(full({65536}, 1, dtype), every_half(dtype));
  }
}

TEST_CASE(
    "extremes of rows of halves and their places are those of the same numbers in float32, NaNs of any sign among them") {
  for (const DType dtype : {kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    for (const int64_t n : {1, 15, 16, 31, 32, 33, 63, 64, 65, 200, 1025}) {
      CAPTURE(n);
      const Tensor x = random({3, n}, 5, dtype);
      const auto check = [&](const Tensor& row) {
        for (const bool largest : {true, false}) {
          const Tensor found = largest ? amax(row, {1}, false) : amin(row, {1}, false);
          const Tensor expected = largest ? amax(wide(row), {1}, false) : amin(wide(row), {1}, false);
          const auto a = found.to_vector<float>(), b = expected.to_vector<float>();
          for (size_t i = 0; i < a.size(); ++i)
            CHECK((std::isnan(b[i]) ? std::isnan(a[i]) : a[i] == b[i]));
        }
        CHECK(argmax(row, 1, false).to_vector<int64_t>() == argmax(wide(row), 1, false).to_vector<int64_t>());
      };
      check(x);
      check(unary(x, UnaryOp::Abs));
      check(unary(unary(x, UnaryOp::Abs), UnaryOp::Neg));
      for (const float special : {0.0F, -0.0F, INFINITY, -INFINITY, NAN, -NAN}) {
        CAPTURE(special);
        for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
          const Tensor y = clone(x);
          fill(view::slice(y, 1, at, at + 1), special);
          check(y);
          check(binary_scalar(y, 0, BinaryOp::Mul, false));  // zeros of both signs, and NaNs
        }
      }
    }
  }
}

TEST_CASE("what the loops make of every half, NaNs of any payload among them, is what they make of it in float32") {
  struct Loop {
    const char* name;
    Tensor (*apply)(const Tensor&);
  };
  const Loop loops[] = {
      {"relu", [](const Tensor& x) { return relu(x); }},
      {"gradient of relu", [](const Tensor& x) { return relu_backward(full(x.sizes(), 3, x.dtype()), x); }},
      {"log", [](const Tensor& x) { return unary(x, UnaryOp::Log); }},
      {"square root", [](const Tensor& x) { return unary(x, UnaryOp::Sqrt); }},
      {"1 / x", [](const Tensor& x) { return unary(x, UnaryOp::Reciprocal); }},
      {"square", [](const Tensor& x) { return unary(x, UnaryOp::Square); }},
      {"-x", [](const Tensor& x) { return unary(x, UnaryOp::Neg); }},
      {"|x|", [](const Tensor& x) { return unary(x, UnaryOp::Abs); }},
      {"sign", [](const Tensor& x) { return unary(x, UnaryOp::Sign); }},
      {"x / 3", [](const Tensor& x) { return binary_scalar(x, 3, BinaryOp::Div, true); }},
      {"x + x", [](const Tensor& x) { return binary(x, x, BinaryOp::Add); }},
  };
  for (const DType dtype : {kFloat16, kBFloat16}) {
    // Each half once at an even and once at an odd position.
    const Tensor x = empty({2 * 65536}, dtype);
    auto* const patterns = static_cast<uint16_t*>(x.raw_data());
    for (int i = 0; i < 65536; ++i)
      patterns[i] = patterns[65536 + (i ^ 1)] = static_cast<uint16_t>(i);
    for (const Loop& loop : loops) {
      CAPTURE(name(dtype));
      CAPTURE(loop.name);
      const Tensor found = loop.apply(x), expected = cast(loop.apply(wide(x)), dtype);
      const auto a = found.to_vector<float>(), b = expected.to_vector<float>();
      int wrong = 0;
      for (size_t i = 0; i < a.size(); ++i)
        wrong += std::isnan(a[i]) ? !std::isnan(b[i]) : a[i] != b[i] || std::signbit(a[i]) != std::signbit(b[i]);
      CHECK(wrong == 0);
    }
  }
}

// All other functions of halves are computed in float32.
TEST_CASE("functions with the digits of a half are within one place of the exact result for every half") {
  struct Function {
    const char* name;
    Tensor (*apply)(const Tensor&);
    double (*exact)(double);
    double smallest;  // bfloat16 result that is not rounded to 0
    double share;     // of results that are a neighbor of the nearest half
  };
  // As in float32, gelu is 0 from -13.1 down.
  const Function functions[] = {
      {"exp", [](const Tensor& x) { return unary(x, UnaryOp::Exp); }, [](double x) { return std::exp(x); }, 0, 0.002},
      {"sigmoid", [](const Tensor& x) { return sigmoid(x); }, [](double x) { return 1 / (1 + std::exp(-x)); }, 0,
       0.002},
      {"silu", [](const Tensor& x) { return silu(x); }, [](double x) { return x / (1 + std::exp(-x)); }, 0, 0.002},
      {"tanh", [](const Tensor& x) { return kernels::tanh(x); }, [](double x) { return std::tanh(x); }, 0, 0.002},
      {"gelu", [](const Tensor& x) { return gelu(x, false); },
       [](double x) { return x * std::erfc(-x * std::sqrt(0.5)) / 2; }, 2e-38, 0.01},
  };
  for (const DType dtype : {kFloat16, kBFloat16}) {
    const Tensor x = empty({65536}, dtype);
    for (int i = 0; i < 65536; ++i)
      static_cast<uint16_t*>(x.raw_data())[i] = static_cast<uint16_t>(i);
    const auto in = x.to_vector<float>();
    for (const Function& f : functions) {
      CAPTURE(name(dtype));
      CAPTURE(f.name);
      Tensor exact = empty({65536}, kFloat64);
      std::transform(in.begin(), in.end(), exact.data_ptr<double>(), [&](float v) { return f.exact(v); });
      const Tensor found = f.apply(x), nearest = cast(exact, dtype);
      const auto* const a = static_cast<const int16_t*>(found.raw_data());
      const auto* const b = static_cast<const int16_t*>(nearest.raw_data());
      const auto y = found.to_vector<float>(), y_exact = nearest.to_vector<float>();
      int far = 0, near = 0;
      for (size_t i = 0; i < in.size(); ++i) {
        if (std::isnan(y_exact[i]) || std::isnan(y[i])) {
          far += std::isnan(y_exact[i]) != std::isnan(y[i]);
        } else if (dtype == kBFloat16 && std::abs(y_exact[i]) < f.smallest) {
          far += std::abs(y[i]) > f.smallest;
        } else {
          // The bit patterns of halves of the same sign are consecutive.
          far += std::abs(a[i] - b[i]) > 1;
          near += a[i] != b[i];
        }
      }
      CHECK(far == 0);
      CHECK(near <= f.share * 65536);
      MESSAGE(std::string(name(dtype)) << " " << std::string(f.name) << ": " << near << " of 65536 are the neighbour");
    }
  }
}

TEST_CASE("a NaN as the number of a loop makes NaNs, whatever its payload") {
  for (const uint64_t bits : {~uint64_t{0}, ~uint64_t{0} >> 1, uint64_t{0x7ff8000000000000}}) {
    const double nan = std::bit_cast<double>(bits);
    for (const DType dtype : {kFloat16, kBFloat16, kFloat32}) {
      CAPTURE(name(dtype));
      CAPTURE(bits);
      const Tensor x = full({70}, -1, dtype), y = full({70}, 2, dtype);
      const auto all_nan = [](const Tensor& found) {
        const auto values = found.to_vector<float>();
        return std::all_of(values.begin(), values.end(), [](float v) { return std::isnan(v); });
      };
      CHECK(all_nan(binary_scalar(x, nan, BinaryOp::Add, false)));
      CHECK(all_nan(binary_scalar(x, nan, BinaryOp::Mul, true)));
      CHECK(all_nan(leaky_relu(x, nan)));
      CHECK(all_nan(leaky_relu_backward(y, x, nan)));
      CHECK(all_nan(lerp(x, y, nan)));
      CHECK(all_nan(ternary(x, y, y, TernaryOp::Addcmul, nan)));
      const Tensor sum = full({70}, 1, dtype);
      add_inplace(sum, y, nan);
      CHECK(all_nan(sum));
    }
  }
}

// Dense halves are processed directly, others as float32.
TEST_CASE("elementwise operations of halves, dense and not, of lengths around what vectors hold") {
  for (const DType dtype : {kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    for (const int64_t n : {1, 15, 16, 17, 31, 32, 33, 48, 1025}) {
      CAPTURE(n);
      const Tensor x = random({n}, 1, dtype), y = random({n}, 2, dtype), z = random({n}, 3, dtype);
      const Tensor x_gaps = view::slice(random({2 * n}, 4, dtype), 0, 0, 2 * n, 2);
      for (const Tensor& a : {x, x_gaps}) {
        for (const BinaryOp op :
             {BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Maximum, BinaryOp::Minimum}) {
          check_same(binary(a, y, op), binary(wide(a), wide(y), op));
          check_same(binary_scalar(a, 1.5, op, true), binary_scalar(wide(a), 1.5, op, true));
        }
        check_same(ternary(a, y, z, TernaryOp::Addcmul, 0.5),
                   ternary(wide(a), wide(y), wide(z), TernaryOp::Addcmul, 0.5));
        check_same(lerp(a, y, 0.3), lerp(wide(a), wide(y), 0.3));
        // Computed with half precision, independent of the layout.
        for (const auto apply : std::initializer_list<Tensor (*)(const Tensor&)>{
                 [](const Tensor& v) { return gelu(v, false); }, [](const Tensor& v) { return silu(v); },
                 [](const Tensor& v) { return sigmoid(v); }, [](const Tensor& v) { return kernels::tanh(v); },
                 [](const Tensor& v) { return unary(v, UnaryOp::Exp); }}) {
          CHECK(apply(a).to_vector<float>() == apply(contiguous(a)).to_vector<float>());
          check_near(apply(a), apply(wide(a)));
        }
        check_same(gelu(a, true), gelu(wide(a), true));
        check_same(leaky_relu(a, 0.1), leaky_relu(wide(a), 0.1));
        check_slope_of_gelu(y, a);
        check_same(gelu_backward(y, a, true), gelu_backward(wide(y), wide(a), true));
        check_same(leaky_relu_backward(y, a, 0.1), leaky_relu_backward(wide(y), wide(a), 0.1));
        check_same(silu_backward(y, a), silu_backward(wide(y), wide(a)));
        check_same(sigmoid_backward(y, a), sigmoid_backward(wide(y), wide(a)));
        check_same(tanh_backward(y, a), tanh_backward(wide(y), wide(a)));
      }
      // In place: input and output are the same array.
      const Tensor sum = cast(wide(x), dtype), sum32 = wide(x);
      add_inplace(sum, y, -0.5);
      add_inplace(sum32, wide(y), -0.5);
      check_same(sum, sum32);
    }
  }
}

// y (g - sum of g y), rounded once from the float32 result. Where g and the sum nearly cancel, only the rounding errors
// of float32 remain, so the exact result is the reference.
void check_slope_of_softmax(const Tensor& grad, const Tensor& y, int dim) {
  const auto found = softmax_backward(grad, y, dim).to_vector<double>();
  const auto exact = softmax_backward(cast(grad, kFloat64), cast(y, kFloat64), dim).to_vector<double>();
  const auto results = y.to_vector<double>();
  const double rounding = y.dtype() == kFloat16 ? 0x1p-11 : 0x1p-8;
  const double largest = amax(unary(cast(grad, kFloat64), UnaryOp::Abs), {}, false).item();
  for (size_t i = 0; i < found.size(); ++i)
    CHECK(std::abs(found[i] - exact[i]) <= rounding * std::abs(exact[i]) + 0x1p-22 * results[i] * largest + 0x1p-25);
}

TEST_CASE("softmax of halves, along rows and down columns, of lengths around what vectors hold") {
  for (const DType dtype : {kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    for (const int64_t n : {1, 15, 33, 64, 130, 4096, 4097}) {
      CAPTURE(n);
      for (const Shape& sizes : {Shape{3, n}, Shape{n, 67}}) {
        CAPTURE(to_string(sizes));
        const Tensor x = random(sizes, 1, dtype), g = random(sizes, 2, dtype);
        for (const int dim : {0, 1}) {
          CAPTURE(dim);
          const Tensor y = softmax(x, dim), logarithm = log_softmax(x, dim);
          check_near(y, softmax(wide(x), dim));
          check_near(logarithm, log_softmax(wide(x), dim));
          check_slope_of_softmax(g, y, dim);
          // g minus a share of the sum of g, where the share has half precision.
          const auto found = log_softmax_backward(g, logarithm, dim).to_vector<float>();
          const auto in_float32 = log_softmax_backward(wide(g), wide(logarithm), dim).to_vector<float>();
          const auto slopes = g.to_vector<float>();
          const float rounding = dtype == kFloat16 ? 0x1p-11F : 0x1p-8F;
          for (size_t i = 0; i < found.size(); ++i) {
            const float share = slopes[i] - in_float32[i];
            CHECK(std::abs(found[i] - in_float32[i]) <=
                  rounding * std::abs(in_float32[i]) + 0x1p-16F * std::abs(share) + 0x1p-24F);
          }
        }
      }
    }
  }
  CHECK(softmax(empty({0, 3}, kBFloat16), 1).numel() == 0);
  CHECK(softmax(empty({3, 0}, kBFloat16), 1).numel() == 0);
}

TEST_CASE("the logarithm of a softmax near 1 has the digits of a half, and a NaN makes NaNs of its row alone") {
  for (const DType dtype : {kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    // 47 logits far below the first one.
    const Tensor x = full({48}, -8, dtype);
    fill(view::slice(x, 0, 0, 1), 0);
    const double expected = -std::log1p(47 * std::exp(-8.0));
    CHECK(log_softmax(x, 0).to_vector<double>()[0] ==
          doctest::Approx(expected).epsilon(dtype == kFloat16 ? 0x1p-10 : 0x1p-7));
    const Tensor rows = zeros({2, 40}, dtype);
    static_cast<uint16_t*>(rows.raw_data())[7] = 0xffff;  // a NaN with an arbitrary payload
    for (const bool logarithm : {false, true}) {
      const auto y = (logarithm ? log_softmax(rows, 1) : softmax(rows, 1)).to_vector<float>();
      for (size_t i = 0; i < y.size(); ++i)
        CHECK(std::isnan(y[i]) == (i < 40));
    }
  }
}

TEST_CASE("reductions of halves are those of float32, rounded, of lengths around what vectors hold") {
  for (const DType dtype : {kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    for (const int64_t n : {1, 15, 16, 17, 33, 64, 130, 1025, 5000}) {
      CAPTURE(n);
      for (const Shape& sizes : {Shape{3, n}, Shape{n, 67}}) {
        CAPTURE(to_string(sizes));
        const Tensor x = random(sizes, 1, dtype);
        for (const int dim : {0, 1}) {
          CAPTURE(dim);
          const Shape dims{dim};
          check_same(amax(x, dims, false), amax(wide(x), dims, false));
          check_same(amin(x, dims, true), amin(wide(x), dims, true));
          const Extremes found = max(x, dim, false), expected = max(wide(x), dim, false);
          check_same(found.values, expected.values);
          CHECK(found.indices.to_vector<int64_t>() == expected.indices.to_vector<int64_t>());
          CHECK(min(x, dim, false).indices.to_vector<int64_t>() ==
                min(wide(x), dim, false).indices.to_vector<int64_t>());
          for (const double p : {0.0, 1.0, 2.0, double{INFINITY}, -double{INFINITY}})
            check_near(norm(x, p, dims, false), norm(wide(x), p, dims, false));
          if (sizes[dim] > 1)
            check_near(variance(x, dims, 1, false, false).variance, variance(wide(x), dims, 1, false, false).variance);
          if (sizes[dim] < 20) check_near(prod(x, dims, false), prod(wide(x), dims, false));
        }
      }
    }
  }
}

TEST_CASE("extremes of long rows: a NaN wins wherever it is, infinities of both signs are none, the first of equals") {
  for (const DType dtype : {kFloat32, kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    constexpr int64_t n = 150;
    for (int64_t at = 0; at < n; ++at) {
      const Tensor x = zeros({n}, dtype);
      const auto put = [&](int64_t i, double value) { fill(view::slice(x, 0, i, i + 1), value); };
      put(at, 3);
      if (at + 7 < n) put(at + 7, 3);
      CHECK(argmax(x, 0, false).to_vector<int64_t>()[0] == at);
      put((at + 5) % n, -INFINITY);
      put((at + 9) % n, INFINITY);
      CHECK(amax(x, {0}, false).to_vector<float>()[0] == INFINITY);
      CHECK(argmax(x, 0, false).to_vector<int64_t>()[0] == (at + 9) % n);
      CHECK(min(x, 0, false).indices.to_vector<int64_t>()[0] == (at + 5) % n);
      put(at, NAN);
      CHECK(std::isnan(amax(x, {0}, false).to_vector<float>()[0]));
      CHECK(std::isnan(amin(x, {0}, false).to_vector<float>()[0]));
      CHECK(argmax(x, 0, false).to_vector<int64_t>()[0] == at);
    }
  }
}

TEST_CASE("a variance of halves far from its first element, and far from zero, has their digits") {
  for (const DType dtype : {kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    const Tensor x = random({2000}, 1, dtype);
    for (const double first : {0.0, 100.0, 30000.0}) {
      fill(view::slice(x, 0, 0, 1), first);
      check_near(variance(x, {0}, 1, false, true).variance, variance(cast(x, kFloat64), {0}, 1, false, true).variance);
    }
    const Tensor far = cast(binary_scalar(random({2000}, 1, kFloat64), 1000, BinaryOp::Add, false), dtype);
    fill(view::slice(far, 0, 0, 1), 0);
    check_near(variance(far, {0}, 1, false, true).variance,
               variance(cast(far, kFloat64), {0}, 1, false, true).variance);
  }
}

TEST_CASE("batch_norm of halves, a channel by itself and several beside each other") {
  for (const DType dtype : {kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    for (const Shape& sizes : {Shape{4, 3, 50}, Shape{5, 300}, Shape{3, 7, 5}, Shape{2, 3, 8, 8}}) {
      CAPTURE(to_string(sizes));
      const int64_t channels = sizes[1];
      const Tensor x = random(sizes, 1, dtype), g = random(sizes, 2, dtype);
      const Tensor weight = random({channels}, 3, kFloat32), bias = random({channels}, 4, kFloat32);
      for (const bool training : {true, false}) {
        CAPTURE(training);
        const Tensor mean = zeros({channels}), var = ones({channels}), mean32 = zeros({channels}),
                     var32 = ones({channels});
        const BatchNorm found = batch_norm(x, weight, bias, mean, var, training, 0.1, 1e-5);
        const BatchNorm expected = batch_norm(wide(x), weight, bias, mean32, var32, training, 0.1, 1e-5);
        check_same(found.y, expected.y);
        CHECK(mean.to_vector<float>() == mean32.to_vector<float>());
        CHECK(var.to_vector<float>() == var32.to_vector<float>());
        const BatchNormGrads slopes = batch_norm_backward(g, x, weight, found.mean, found.invstd, training);
        const BatchNormGrads slopes32 =
            batch_norm_backward(wide(g), wide(x), weight, expected.mean, expected.invstd, training);
        check_same(slopes.x, slopes32.x);
        CHECK(slopes.weight.to_vector<float>() == slopes32.weight.to_vector<float>());
        CHECK(slopes.bias.to_vector<float>() == slopes32.bias.to_vector<float>());
      }
    }
  }
}

// Whole numbers whose products and sums are exact in float32, so every order of summation gives the same result.
TEST_CASE(
    "products of halves are those of float32, rounded once: transposed, batched, broadcast, added to, with a bias") {
  const auto whole = [](const Shape& sizes, uint64_t seed, DType dtype) {
    RandomGenerator generator(seed);
    return cast(cast(binary_scalar(randn(sizes, {}, &generator), 4, BinaryOp::Mul, false), kInt64), dtype);
  };
  for (const DType dtype : {kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    for (const int64_t m : {1, 31, 40}) {
      for (const int flags : {0, 1, 2, 3}) {
        CAPTURE(m);
        CAPTURE(flags);
        MatmulOptions options{.transpose_a = (flags & 1) != 0, .transpose_b = (flags & 2) != 0};
        const int64_t n = 129, k = 65;
        const Tensor a = whole(options.transpose_a ? Shape{k, m} : Shape{m, k}, 1, dtype);
        const Tensor b = whole(options.transpose_b ? Shape{n, k} : Shape{k, n}, 2, dtype);
        check_same(matmul(a, b, options), matmul(wide(a), wide(b), options));
        // Strided rows, one matrix for a whole batch, and a broadcast batch.
        const Tensor gaps = view::slice(whole({3, a.sizes()[0], a.sizes()[1] + 5}, 3, dtype), 2, 2, a.sizes()[1] + 2);
        check_same(matmul(gaps, b, options), matmul(wide(gaps), wide(b), options));
        const Tensor many = whole({2, 1, b.sizes()[0], b.sizes()[1]}, 4, dtype);
        check_same(matmul(gaps, many, options), matmul(wide(gaps), wide(many), options));
        // 1/3 is not representable as a half, so it shows whether the sum was rounded before accumulation.
        const Tensor third = full({m, n}, 1.0 / 3, dtype);
        const Tensor expected = binary(matmul(wide(a), wide(b), options), wide(third), BinaryOp::Add);
        options.out = third;
        options.accumulate = true;
        check_same(matmul(a, b, options), expected);
      }
      const Tensor x = whole({2, m, 65}, 5, dtype);
      const Tensor weight = whole({129, 65}, 6, dtype), bias = full({129}, 1.0 / 3, dtype);
      check_same(linear(x, weight, bias), linear(wide(x), wide(weight), wide(bias)));
    }
  }
}

}  // namespace brigade::test::halves_test
