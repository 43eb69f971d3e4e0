// Orthonormalization of columns: their span, columns that vanish, and the replacements for these.
#include <brigade/core/factory.h>
#include <brigade/core/random.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/matmul.h>

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::test::orthogonalize_test {
namespace {

Tensor numbers(int64_t n, int64_t r, DType dtype, uint64_t seed = 1) {
  RandomGenerator generator(seed);
  const Tensor x = empty({n, r}, kFloat64);
  kernels::fill_normal(x, generator.reserve(static_cast<uint64_t>(x.numel())), 0, 3);
  return kernels::cast(x, dtype);
}

struct Matrix {
  std::vector<double> values;
  int64_t n, r;
  explicit Matrix(const Tensor& of) : values(of.to_vector<double>()), n(of.size(0)), r(of.size(1)) {}
  double at(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * r + j)]; }
  double dot(int64_t j, const Matrix& other, int64_t k) const {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += at(i, j) * other.at(i, k);
    return sum;
  }
  // The largest element of Q^T Q - I.
  double distance_from_orthonormal() const {
    double worst = 0;
    for (int64_t j = 0; j < r; ++j) {
      for (int64_t k = 0; k < r; ++k)
        worst = std::max(worst, std::abs(dot(j, *this, k) - (j == k ? 1 : 0)));
    }
    return worst;
  }
};

void set_column(const Tensor& matrix, int64_t j, double value) {
  kernels::fill(view::slice(matrix, 1, j, j + 1), value);
}

}  // namespace

TEST_CASE("columns become orthonormal, and span what they did") {
  struct Bound {
    DType dtype;
    double orthonormal, span;
  };
  for (const auto& [dtype, orthonormal, span] :
       {Bound{kFloat64, 1e-14, 1e-13}, {kFloat32, 1e-6, 1e-5}, {kFloat16, 4e-3, 2e-2}, {kBFloat16, 3e-2, 0.2}}) {
    CAPTURE(name(dtype));
    const Tensor x = numbers(40, 5, dtype);
    const Tensor q = kernels::clone(x);
    kernels::orthogonalize(q, Tensor());
    const Matrix of_q(q), of_x(x);
    CHECK(of_q.distance_from_orthonormal() < orthonormal);
    // Column j lies in the span of columns 0 to j of Q.
    for (int64_t j = 0; j < 5; ++j) {
      double rest = of_x.dot(j, of_x, j);
      for (int64_t k = 0; k <= j; ++k)
        rest -= std::pow(of_q.dot(k, of_x, j), 2);
      CHECK(std::abs(rest) < span * of_x.dot(j, of_x, j));
      CHECK(of_q.dot(j, of_x, j) > 0);
    }
  }
}

TEST_CASE("a column that vanishes is zero, or a fresh one") {
  const Tensor x = numbers(30, 4, kFloat32);
  set_column(x, 0, 0);
  // A multiple of column 1, rounded.
  kernels::copy(view::slice(x, 1, 2, 3),
                kernels::binary_scalar(view::slice(x, 1, 1, 2), 1.1, kernels::BinaryOp::Mul, false));
  const Tensor zeros = kernels::clone(x);
  kernels::orthogonalize(zeros, Tensor());
  const Matrix without(zeros);
  for (const int64_t j : {0, 2})
    CHECK(without.dot(j, without, j) == 0);
  for (const int64_t j : {1, 3})
    CHECK(without.dot(j, without, j) == doctest::Approx(1));
  CHECK(std::abs(without.dot(1, without, 3)) < 1e-6);

  const Tensor fresh = numbers(30, 4, kFloat32, 2);
  const Tensor filled = kernels::clone(x);
  kernels::orthogonalize(filled, fresh);
  const Matrix with(filled), from(fresh);
  CHECK(with.distance_from_orthonormal() < 1e-6);
  CHECK(with.dot(0, from, 0) == doctest::Approx(std::sqrt(from.dot(0, from, 0))));  // the first keeps its direction
  // A replacement that vanishes itself does not help.
  const Tensor again = kernels::clone(x);
  kernels::orthogonalize(again, zeros);
  CHECK(Matrix(again).dot(0, Matrix(again), 0) == 0);
}

TEST_CASE("more columns than rows, none, and what is refused") {
  const Tensor wide = numbers(2, 4, kFloat64);
  kernels::orthogonalize(wide, numbers(2, 4, kFloat64, 2));
  const Matrix of(wide);
  CHECK(of.dot(0, of, 0) == doctest::Approx(1));
  CHECK(of.dot(1, of, 1) == doctest::Approx(1));
  CHECK(std::abs(of.dot(0, of, 1)) < 1e-14);
  CHECK(of.dot(2, of, 2) + of.dot(3, of, 3) == 0);
  kernels::orthogonalize(empty({0, 3}), Tensor());
  kernels::orthogonalize(empty({3, 0}), Tensor());
  CHECK_THROWS_AS(kernels::orthogonalize(empty({3}), Tensor()), ShapeError);
  CHECK_THROWS_AS(kernels::orthogonalize(view::transpose(empty({3, 2}), 0, 1), Tensor()), ShapeError);
  CHECK_THROWS_AS(kernels::orthogonalize(empty({3, 2}, kInt64), Tensor()), DTypeError);
  CHECK_THROWS_AS(kernels::orthogonalize(empty({3, 2}), empty({2, 3})), ShapeError);
}

}  // namespace brigade::test::orthogonalize_test
