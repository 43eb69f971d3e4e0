// Sums, means, and extremes, compared with plain loops in double.
#include <brigade/core/view.h>
#include <brigade/kernels/reduce.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace brigade::test::reduce_test {
using namespace brigade::kernels;
using test::at;
using test::numbers;

TEST_CASE("sums, means and extremes over any dimensions") {
  for (const DType dtype : {kFloat64, kFloat32, kInt64, kInt32, kUInt8, kBool}) {
    const Tensor x = numbers({3, 4, 5}, dtype);
    for (const Shape& dims : std::vector<Shape>{{}, {0}, {1}, {2}, {0, 2}, {1, 2}, {-1, 0, 1}}) {
      const Tensor result = sum(x, {.dims = dims, .keepdim = true});
      std::vector<double> expected(static_cast<size_t>(result.numel()), 0.0);
      for (int64_t i = 0; i < 60; ++i) {
        const int64_t index[] = {i / 20, i / 5 % 4, i % 5};
        int64_t position = 0;
        for (int d = 0; d < 3; ++d)
          position = position * result.sizes()[d] + (result.sizes()[d] == 1 ? 0 : index[d]);
        expected[static_cast<size_t>(position)] += at(x, i);
      }
      CAPTURE(name(dtype));
      CAPTURE(to_string(dims));
      CHECK(result.to_vector<double>() == expected);
      CHECK(result.dtype() == (is_floating_point(dtype) ? dtype : kInt64));
    }
  }
  // Needs pairwise summation: ten million times 0.1 in float32.
  CHECK(at(sum(full({10'000'000}, 0.1), {}), 0) == doctest::Approx(1e6).epsilon(1e-6));
  const Tensor tall = full({100'000, 3}, 0.1);
  CHECK(at(sum(tall, {.dims = {0}}), 2) == doctest::Approx(1e4).epsilon(1e-6));
  CHECK(at(mean(numbers({5}, kFloat32), {}), 0) == doctest::Approx(at(sum(numbers({5}, kFloat32), {}), 0) / 5));
  const Extremes high = max(tensor(std::vector<float>{1, 5, 5, -1, std::nanf(""), 9}, {2, 3}), 1, false);
  CHECK(high.indices.to_vector<int64_t>() == std::vector<int64_t>{1, 1});
  CHECK(at(high.values, 0) == 5);
  CHECK(min(numbers({4, 3}, kInt64), 0, true).values.sizes() == Shape{1, 3});
  CHECK_THROWS_AS(max(zeros({2, 0}), 1, false), ShapeError);
  CHECK_THROWS_AS(sum(zeros({2, 2}), {.dims = {0, -2}}), ShapeError);
  CHECK(sum_to(ones({2, 3, 4}), {3, 1}).to_vector<float>() == std::vector<float>{8, 8, 8});
}

TEST_CASE("sums of halves along rows and columns of any length") {
  for (const DType dtype : {kFloat16, kBFloat16}) {
    // Every sum is a small integer, exact in each dtype; no vector width is a multiple of 7, the period of the values.
    for (const int64_t n : {1, 7, 15, 16, 17, 63, 65, 255, 1000, 1025, 4097}) {
      for (const Shape& sizes : {Shape{3, n}, Shape{n, 3}}) {
        const Tensor x = numbers(sizes, dtype);
        const Tensor wide = numbers(sizes, kFloat64);
        CAPTURE(name(dtype));
        CAPTURE(to_string(sizes));
        for (const Shape& dims : {Shape{0}, Shape{1}, Shape{0, 1}})
          CHECK(sum(x, {.dims = dims}).to_vector<double>() == sum(wide, {.dims = dims}).to_vector<double>());
      }
    }
  }
}

TEST_CASE("sums of columns of any width and length, and of every order of memory") {
  for (const DType dtype : {kFloat32, kBFloat16, kFloat64, kInt32}) {
    CAPTURE(name(dtype));
    for (const int64_t width : {1, 2, 3, 4, 7, 16, 63, 128, 129, 255, 257}) {
      for (const int64_t length : {1, 3, 65, 700}) {
        CAPTURE(width);
        CAPTURE(length);
        const Tensor x = numbers({2, length, width}, dtype);
        const Tensor columns = sum(x, {.dims = {1}});
        std::vector<double> expected(static_cast<size_t>(2 * width));
        for (int64_t i = 0; i < x.numel(); ++i)
          expected[static_cast<size_t>(i / (length * width) * width + i % width)] += at(x, i);
        CHECK(columns.to_vector<double>() ==
              cast(tensor(expected, columns.sizes()), columns.dtype()).to_vector<double>());
      }
    }
  }
  // Each memory order gives the result of a dense copy.
  const Tensor base = test::random({3, 40, 5, 2}, 4, kFloat64);
  for (const Shape& order : std::vector<Shape>{{0, 1, 2, 3}, {1, 0, 2, 3}, {3, 2, 1, 0}, {0, 3, 1, 2}, {2, 3, 0, 1}}) {
    const Tensor x = view::permute(base, order);
    const Tensor dense = clone(x);
    for (const Shape& dims : std::vector<Shape>{{}, {0}, {1}, {3}, {0, 1}, {1, 2}, {0, 3}, {0, 1, 3}}) {
      CAPTURE(to_string(order));
      CAPTURE(to_string(dims));
      CHECK(test::largest_difference(sum(x, {.dims = dims}), sum(dense, {.dims = dims})) <= 1e-13);
      CHECK(test::largest_difference(amax(x, dims, true), amax(dense, dims, true)) == 0);
    }
  }
}

#ifdef _OPENMP
TEST_CASE("narrow and wide columns have the same sums on any number of threads, as exact as in double") {
  const int before = omp_get_max_threads();
  for (const auto& [length, width] :
       std::vector<std::pair<int64_t, int64_t>>{{300'000, 3}, {40'000, 70}, {3'000, 300}}) {
    CAPTURE(width);
    RandomGenerator generator(2);
    const Tensor x = rand({length, width}, {}, &generator), turned = clone(view::transpose(x, 0, 1));
    const Tensor exact = sum(cast(x, kFloat64), {.dims = {0}});
    std::vector<Tensor> found;
    for (const int threads : {1, 2, 5}) {
      omp_set_num_threads(threads);
      found.push_back(sum(x, {.dims = {0}}));
      CHECK(found.back().to_vector<float>() == found.front().to_vector<float>());
    }
    omp_set_num_threads(before);
    const Tensor across = sum(view::transpose(turned, 0, 1), {.dims = {0}});
    const Tensor norms = norm(x, 2, {0}, false),
                 squares = sum(binary(cast(x, kFloat64), cast(x, kFloat64), BinaryOp::Mul), {.dims = {0}});
    for (int64_t j = 0; j < width; ++j) {
      CHECK(std::abs(at(found[0], j) / at(exact, j) - 1) <= 2e-7);
      CHECK(std::abs(at(across, j) / at(exact, j) - 1) <= 2e-7);
      CHECK(std::abs(at(norms, j) / std::sqrt(at(squares, j)) - 1) <= 1e-6);
    }
  }
}
#endif

TEST_CASE("argmax is the first of the largest, and the gradient of extremes goes where they were") {
  for (const DType dtype : test::kEveryDType) {
    CAPTURE(name(dtype));
    const Tensor dense = numbers({3, 7, 5}, dtype);
    for (const Tensor& x :
         {dense, view::transpose(dense, 0, 2), view::slice(numbers({3, 14, 5}, dtype), 1, 1, 14, 2)}) {
      const int64_t length = x.size(1), inner = x.size(2);
      const Tensor found = argmax(x, 1, true);
      REQUIRE(found.sizes() == Shape{x.size(0), 1, inner});
      REQUIRE(found.dtype() == kInt64);
      const Tensor grad = is_floating_point(dtype) ? test::random(found.sizes(), 2, dtype) : Tensor();
      const Tensor slope = grad.defined() ? extremes_backward(grad, found, x.sizes(), 1) : Tensor();
      for (int64_t i = 0; i < found.numel(); ++i) {
        const auto place = [&](int64_t k) { return (i / inner * length + k) * inner + i % inner; };
        int64_t best = 0;
        for (int64_t k = 1; k < length; ++k)
          best = at(x, place(k)) > at(x, place(best)) ? k : best;
        CHECK(static_cast<int64_t>(at(found, i)) == best);
        for (int64_t k = 0; slope.defined() && k < length; ++k)
          CHECK(at(slope, place(k)) == (k == best ? at(grad, i) : 0));
      }
    }
  }
  CHECK_THROWS_AS(argmax(zeros({2, 0}), 1, false), ShapeError);
  CHECK_THROWS_WITH_AS(extremes_backward(ones({3}), zeros({2}, kInt64), {2, 3}, 1),
                       doctest::Contains("max/min: expected a gradient and an index for each slice along dimension 1"),
                       ShapeError);
}

}  // namespace brigade::test::reduce_test
