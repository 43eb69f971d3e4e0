// Activations, softmax, dropout, random numbers, and optimizer steps: CUDA kernels, compared with the CPU's.
#include "on_device.h"

#include <near.h>

#include <brigade/kernels/activation.h>
#include <brigade/kernels/optimizer.h>

#include <functional>
#include <limits>

namespace brigade::test::activation_test {
using namespace brigade::kernels;

namespace {

// Allows for two implementations of exp, tanh, and erf.
double function_tolerance(DType dtype) {
  return dtype == kFloat32 ? 3e-6 : dtype == kFloat64 ? 1e-13 : tolerance(dtype);
}

}  // namespace

TEST_CASE("activations and their backward") {
  using Forward = std::function<Tensor(const Tensor&)>;
  using Backward = std::function<Tensor(const Tensor&, const Tensor&)>;
  struct Row {
    const char* what;
    Forward forward;
    Backward backward;
  };
  const std::vector<Row> rows{
      {"relu", [](const Tensor& x) { return relu(x); },
       [](const Tensor& g, const Tensor& y) { return relu_backward(g, y); }},
      {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.2); },
       [](const Tensor& g, const Tensor& x) { return leaky_relu_backward(g, x, 0.2); }},
      {"gelu", [](const Tensor& x) { return gelu(x, false); },
       [](const Tensor& g, const Tensor& x) { return gelu_backward(g, x, false); }},
      {"gelu tanh", [](const Tensor& x) { return gelu(x, true); },
       [](const Tensor& g, const Tensor& x) { return gelu_backward(g, x, true); }},
      {"tanh", [](const Tensor& x) { return kernels::tanh(x); },
       [](const Tensor& g, const Tensor& y) { return tanh_backward(g, y); }},
      {"sigmoid", [](const Tensor& x) { return sigmoid(x); },
       [](const Tensor& g, const Tensor& y) { return sigmoid_backward(g, y); }},
      {"silu", [](const Tensor& x) { return silu(x); },
       [](const Tensor& g, const Tensor& x) { return silu_backward(g, x); }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    for (const DType dtype : kFloatingDTypes) {
      CAPTURE(name(dtype));
      for (const int64_t size : {0, 1, 7, 4096, 5001}) {
        CAPTURE(size);
        const Tensor x = numbers({size}, dtype, 1);
        const Tensor grad = numbers({size}, dtype, 2);
        const double bound = function_tolerance(dtype);
        CHECK(difference(row.forward(on_device(x)), row.forward(x)) <= bound);
        CHECK(difference(row.backward(on_device(grad), on_device(x)), row.backward(grad, x)) <= 4 * bound);
      }
      const Tensor wide = numbers({9, 65}, dtype, 1);
      const Tensor turned = view::transpose(wide, 0, 1);
      CHECK(difference(row.forward(view::transpose(on_device(wide), 0, 1)), row.forward(turned)) <=
            function_tolerance(dtype));
      const Tensor grad = numbers({65, 9}, dtype, 2);
      CHECK(difference(row.backward(on_device(grad), view::transpose(on_device(wide), 0, 1)),
                       row.backward(grad, turned)) <= 4 * function_tolerance(dtype));
    }
    CHECK_THROWS_WITH_AS(row.backward(on_device(ones({3})), on_device(ones({4}))),
                         doctest::Contains("expected a gradient like"), ShapeError);
  }
}

TEST_CASE("softmax and log_softmax along any dimension, rows shorter and longer than a warp and a block") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const int64_t n : {1, 2, 31, 32, 33, 1024, 1025, 3001}) {
      CAPTURE(n);
      for (const auto& [sizes, dim] : std::vector<std::pair<Shape, int>>{{{5, n}, 1}, {{n, 3}, 0}, {{2, n, 2}, 1}}) {
        const Tensor x = numbers(sizes, dtype, 1);
        const Tensor grad = numbers(sizes, dtype, 2);
        const double bound = function_tolerance(dtype);
        const Tensor y = softmax(x, dim);
        const Tensor z = log_softmax(x, dim);
        CHECK(difference(softmax(on_device(x), dim), y) <= bound);
        CHECK(difference(log_softmax(on_device(x), dim), z) <= 4 * bound);
        CHECK(difference(softmax_backward(on_device(grad), on_device(y), dim), softmax_backward(grad, y, dim)) <=
              8 * bound);
        const double sums = dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 1e-4 : 0.05;
        CHECK(difference(log_softmax_backward(on_device(grad), on_device(z), dim),
                         log_softmax_backward(grad, z, dim)) <= sums);
      }
    }
  }
  // Rows longer than a block holds, with and without vector access; rows with an unaligned start.
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    const auto both = [&](const Tensor& here, const Tensor& there) {
      const Tensor y = softmax(here, 1);
      const Tensor z = log_softmax(here, 1);
      const double bound = function_tolerance(dtype);
      CHECK(difference(softmax(there, 1), y) <= bound);
      CHECK(difference(log_softmax(there, 1), z) <= 4 * bound);
      CHECK(difference(softmax_backward(there, on_device(y), 1), softmax_backward(here, y, 1)) <= 8 * bound);
      const double sums = dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 1e-4 : 0.02;
      CHECK(difference(softmax_backward(there, there, 1), softmax_backward(here, here, 1)) <= sums);
      CHECK(difference(log_softmax_backward(there, on_device(z), 1), log_softmax_backward(here, z, 1)) <= sums);
    };
    for (const int64_t n : {4000, 4098, 16400, 16401}) {
      CAPTURE(n);
      const Tensor x = numbers({2, n}, dtype, 1);
      both(x, on_device(x));
    }
    for (const int64_t n : {48, 1600}) {
      CAPTURE(n);
      const Tensor x = numbers({1 + 3 * n}, dtype, 1);
      const auto late = [&](const Tensor& t) { return view::as_strided(t, {3, n}, {n, 1}, 1); };
      both(late(x), late(on_device(x)));
    }
  }
  // A row with masks, one of only masks, an infinity, a NaN, large numbers; a tensor without dimensions.
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t n : {4, 5, 600, 2000, 8200}) {
    for (const float first : {-inf, inf, nan, 1e30F}) {
      for (const float rest : {0.0F, -inf, -1e30F}) {
        CAPTURE(n);
        CAPTURE(first);
        CAPTURE(rest);
        for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
          Tensor x = full({1, n}, rest);
          x.data_ptr<float>()[at] = first;
          CHECK(difference(softmax(on_device(x), 1), softmax(x, 1)) <= 1e-6);
          CHECK(difference(log_softmax(on_device(x), 1), log_softmax(x, 1)) <= 1e-6);
        }
      }
    }
  }
  CHECK(difference(softmax(on_device(full({}, 3.0)), 0), ones({})) == 0);
  CHECK(softmax(on_device(zeros({0, 4})), 1).sizes() == Shape{0, 4});
}

TEST_CASE("random numbers and dropout masks are the CPU's, for any place in the stream") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const int64_t size : {0, 1, 3, 4, 1023, 5001}) {
      CAPTURE(size);
      const PhiloxState state{7, static_cast<uint64_t>(3 * size)};
      const auto both = [&](const auto& fill_it, double bound) {
        const Tensor here = empty({size}, dtype);
        const Tensor there = empty({size}, {dtype, kDevice});
        fill_it(here);
        fill_it(there);
        CHECK(difference(there, here) <= bound);
      };
      both([&](const Tensor& out) { fill_uniform(out, state, -1, 3); }, 0);
      both([&](const Tensor& out) { fill_normal(out, state, 1, 2); }, tolerance(dtype));
      const Tensor x = numbers({size}, dtype, 1);
      for (const double p : {0.0, 0.3, 1.0})
        CHECK(difference(dropout(on_device(x), p, state), dropout(x, p, state)) == 0);
    }
    // Unaligned.
    const Tensor x = numbers({1001}, dtype, 1);
    CHECK(difference(dropout(view::slice(on_device(x), 0, 1, 1001), 0.5, {1, 2}),
                     dropout(view::slice(x, 0, 1, 1001), 0.5, {1, 2})) == 0);
  }
  CHECK_THROWS_AS(dropout(on_device(ones({2})), 1.5, {}), ValueError);
}

TEST_CASE("optimizer steps: SGD and Adam in all their forms, with odd sizes and unaligned tensors") {
  for (const DType dtype : kFloatingDTypes) {
    for (const int64_t size : {0, 1, 5, 1024, 4099}) {
      for (const int64_t late : {0, 1}) {  // 1: unaligned
        CAPTURE(name(dtype));
        CAPTURE(size);
        CAPTURE(late);
        std::vector<Tensor> here, there;
        for (uint64_t seed = 1; seed <= 5; ++seed) {
          const Tensor whole =
              unary(numbers({size + late}, dtype, seed), UnaryOp::Abs);  // second moments are not negative
          here.push_back(clone(view::slice(whole, 0, late, size + late)));
          there.push_back(view::slice(on_device(whole), 0, late, size + late));
        }
        const auto compare = [&] {
          double worst = 0;
          for (size_t i = 0; i < here.size(); ++i)
            worst = worse(worst, difference(there[i], here[i]));
          return worst;
        };
        const double bound = 4 * function_tolerance(dtype);
        for (const bool nesterov : {false, true}) {
          for (const bool first : {true, false}) {
            const SgdParams s{0.1, 0.9, nesterov ? 0 : 0.2, 0.01, nesterov, first, first};
            sgd_step(here[0], here[1], here[2], s);
            sgd_step(there[0], there[1], there[2], s);
          }
        }
        const SgdParams plain{0.1, 0, 0, 0.3, false, false, false};
        sgd_step(here[0], here[1], Tensor(), plain);
        sgd_step(there[0], there[1], Tensor(), plain);
        CHECK(compare() <= bound);
        for (const bool decoupled : {false, true}) {
          for (const bool amsgrad : {false, true}) {
            const AdamParams a{1e-2, 0.9, 0.99, 1e-8, 0.1, 3, decoupled, amsgrad};
            adam_step(here[0], here[1], here[2], here[3], amsgrad ? here[4] : Tensor(), a);
            adam_step(there[0], there[1], there[2], there[3], amsgrad ? there[4] : Tensor(), a);
          }
        }
        CHECK(compare() <= 4 * bound);
      }
    }
  }
  const Tensor p = on_device(ones({3}));
  CHECK_THROWS_WITH_AS(sgd_step(p, on_device(ones({4})), Tensor(), SgdParams{0.1, 0, 0, 0, false, false, false}),
                       doctest::Contains("gradient must be contiguous and like the parameter"), ShapeError);
  CHECK_THROWS_AS(sgd_step(p, ones({3}), Tensor(), SgdParams{0.1, 0, 0, 0, false, false, false}), ShapeError);
}

}  // namespace brigade::test::activation_test
