// A single matrix product on the CPU, both small ones and ones that go to a library, compared with plain loops in
// double.
#include <brigade/kernels/cpu/detail/gemm.h>

#include <brigade/core/random.h>
#include <brigade/kernels/cpu/vector/products.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace brigade::test::gemm_test {
namespace {

constexpr int64_t kGap = 3;  // elements between the rows of a matrix, which must not be touched

// `rows` rows of `width` whole numbers, exact in every sum below; NaN in the gaps.
template <class T>
std::vector<T> matrix(int64_t rows, int64_t width, int seed) {
  std::vector<T> values(static_cast<size_t>(rows * (width + kGap)), std::numeric_limits<T>::quiet_NaN());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < width; ++j)
      values[static_cast<size_t>(i * (width + kGap) + j)] = static_cast<T>((i * 5 + j * 3 + seed) % 11 - 5);
  }
  return values;
}

template <class T>
void check_product(int64_t m, int64_t n, int64_t k, bool ta, bool tb, bool accumulate) {
  CAPTURE("m " + std::to_string(m) + ", n " + std::to_string(n) + ", k " + std::to_string(k));
  CAPTURE(ta);
  CAPTURE(tb);
  CAPTURE(accumulate);
  const int64_t lda = (ta ? m : k) + kGap;
  const int64_t ldb = (tb ? k : n) + kGap;
  const int64_t ldc = n + kGap;
  const std::vector<T> a = matrix<T>(ta ? k : m, lda - kGap, 1), b = matrix<T>(tb ? n : k, ldb - kGap, 2);
  // The initial output: values to accumulate into, or NaN that must not be read.
  std::vector<T> c(static_cast<size_t>(m * ldc), std::numeric_limits<T>::quiet_NaN());
  if (accumulate) c = matrix<T>(m, n, 3);
  const std::vector<T> before = c;
  kernels::cpu::gemm(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, accumulate ? T(1) : T(0), c.data(), ldc);
  int64_t wrong = 0;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < ldc; ++j) {
      const T found = c[static_cast<size_t>(i * ldc + j)];
      if (j >= n) {
        wrong += !std::isnan(found);
        continue;
      }
      double expected = accumulate ? static_cast<double>(before[static_cast<size_t>(i * ldc + j)]) : 0;
      for (int64_t p = 0; p < k; ++p)
        expected += static_cast<double>(a[static_cast<size_t>(ta ? p * lda + i : i * lda + p)]) *
                    static_cast<double>(b[static_cast<size_t>(tb ? j * ldb + p : p * ldb + j)]);
      wrong += !(static_cast<double>(found) == expected);
    }
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("gemm: every size around what vectors and blocks hold, transposed, added to, with gaps between the rows") {
  for (const int64_t m : {1, 2, 7, 8, 9, 16, 33}) {
    for (const int64_t n : {1, 3, 4, 8, 15, 16, 17, 32, 48}) {
      for (const int64_t k : {1, 5, 16, 31, 200}) {
        for (const int flags : {0, 1, 2, 3, 4, 5, 6, 7}) {
          check_product<float>(m, n, k, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0);
          check_product<double>(m, n, k, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0);
        }
      }
    }
  }
}

TEST_CASE("gemm: few rows times long rows of a transposed matrix, in one copy of the few and in several") {
  for (const int64_t m : {3, 6, 8, 15, 16, 17, 32, 33, 64, 65, 128, 129}) {
    for (const int64_t n : {11, 12, 19, 67}) {
      for (const int64_t k : {511, 512, 1029, 4101}) {
        check_product<float>(m, n, k, false, true, false);
        check_product<float>(m, n, k, false, true, true);
      }
    }
  }
}

TEST_CASE("gemm: a batch through a linear layer copies the batch and not the weights") {
  const auto room = [](int64_t m, int64_t n, int64_t k, bool ta, bool tb) {
    return kernels::cpu::thin_room({ta, tb, m, n, k, nullptr, k, nullptr, k, false, nullptr, n});
  };
  for (const auto& [n, k] : std::vector<std::array<int64_t, 2>>{{1024, 784}, {1024, 1024}, {4096, 4096}, {128, 9216}}) {
    CAPTURE(n);
    CAPTURE(k);
    CHECK(room(16, n, k, false, true) > 0);
    CHECK(room(16, n, k, false, true) <= 64 * 1024 + 16 * n);
    CHECK(room(1024, n, k, false, true) == 0);  // with many rows, a library's layout is faster
    CHECK(room(1, n, k, false, true) == 0);
    CHECK(room(16, n, k, true, true) == 0);
    CHECK(room(16, n, k, false, false) == 0);
  }
  CHECK(room(16, 1024, 256, false, true) == 0);
}

TEST_CASE("gemm: a long sum of few rows is as exact as one of short chains") {
  constexpr int64_t kLong = 4096;
  RandomGenerator generator(3);
  const Tensor a = randn({16, kLong}, kFloat32, &generator), b = randn({64, kLong}, kFloat32, &generator);
  std::vector<float> c(16 * 64);
  kernels::cpu::gemm(false, true, 16, 64, kLong, a.data_ptr<float>(), kLong, b.data_ptr<float>(), kLong, 0, c.data(),
                     64);
  double squares = 0;
  for (int64_t i = 0; i < 16; ++i) {
    for (int64_t j = 0; j < 64; ++j) {
      double exact = 0;
      for (int64_t p = 0; p < kLong; ++p)
        exact += static_cast<double>(a.data_ptr<float>()[i * kLong + p]) * b.data_ptr<float>()[j * kLong + p];
      squares += std::pow(c[static_cast<size_t>(i * 64 + j)] - exact, 2);
    }
  }
  // A single accumulation chain of 4,096 would be off by more than 1.1e-6.
  CHECK(std::sqrt(squares / c.size() / kLong) < 7e-7);
}

TEST_CASE(
    "gemm: a product by a vector is as exact as a sum in double, and has the same bits on any number of threads") {
#ifdef _OPENMP
  const int before = omp_get_max_threads();
#endif
  // The matrix as stored. Dot products over rows, or over columns: a few, several vectors of them, and more than a
  // block.
  struct Row {
    int64_t rows, columns;
    bool transposed;
  };
  for (const auto& [rows, columns, transposed] : std::vector<Row>{{1, 300'001, false},
                                                                  {1, 300'001, true},
                                                                  {3, 150'000, false},
                                                                  {150'000, 1, true},
                                                                  {150'000, 3, true},
                                                                  {40'000, 17, true},
                                                                  {20'000, 70, true},
                                                                  {2'000, 1'100, true}}) {
    CAPTURE(rows);
    CAPTURE(columns);
    CAPTURE(transposed);
    RandomGenerator generator(3);
    const Tensor a = rand({rows, columns}, kFloat32, &generator);  // no cancellation
    const int64_t results = transposed ? columns : rows, length = transposed ? rows : columns;
    const Tensor x = rand({length}, kFloat32, &generator);
    std::vector<float> left(static_cast<size_t>(results)), right(left), threaded(left);
    const auto multiply = [&](std::vector<float>& y) {
      kernels::cpu::gemm(transposed, false, results, 1, length, a.data_ptr<float>(), columns, x.data_ptr<float>(), 1, 0,
                         y.data(), 1);
    };
    multiply(right);
    kernels::cpu::gemm(false, !transposed, 1, results, length, x.data_ptr<float>(), length, a.data_ptr<float>(),
                       columns, 0, left.data(), results);
    double worst = 0;
    for (int64_t i = 0; i < results; ++i) {
      double exact = 0;
      for (int64_t p = 0; p < length; ++p)
        exact += static_cast<double>(a.data_ptr<float>()[transposed ? p * columns + i : i * columns + p]) *
                 static_cast<double>(x.data_ptr<float>()[p]);
      worst = std::max(worst, std::abs(right[static_cast<size_t>(i)] / exact - 1));
    }
    CHECK(worst <= 3e-7);
    if (results > 1) CHECK(left == right);  // for a single result, either factor may be treated as the matrix
#ifdef _OPENMP
    for (const int threads : {1, 2, 5}) {
      omp_set_num_threads(threads);
      multiply(threaded);
      CHECK(threaded == right);
    }
    omp_set_num_threads(before);
#endif
  }
}

#ifdef _OPENMP
TEST_CASE("gemm: few rows have the same bits on any number of threads") {
  const int before = omp_get_max_threads();
  RandomGenerator generator(7);
  const Tensor a = randn({20, 4500}, kFloat32, &generator), b = randn({301, 4500}, kFloat32, &generator);
  std::vector<std::vector<float>> found;
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    found.emplace_back(20 * 301);
    kernels::cpu::gemm(false, true, 20, 301, 4500, a.data_ptr<float>(), 4500, b.data_ptr<float>(), 4500, 0,
                       found.back().data(), 301);
  }
  omp_set_num_threads(before);
  CHECK(found[1] == found[0]);
  CHECK(found[2] == found[0]);
}
#endif

}  // namespace brigade::test::gemm_test
