// The bucket kernels, compared with plain loops. (Host sums and probes: tests/dist/payload_threads_test.cpp.)
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/bucket.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace brigade::test::bucket_test {
namespace {

Tensor ramp(int64_t n, DType dtype, double first = 1) {
  Tensor x = empty({n}, kFloat64);
  for (int64_t i = 0; i < n; ++i)
    x.data_ptr<double>()[i] = first + 0.25 * static_cast<double>(i % 50);
  return kernels::cast(x, dtype);
}

const std::vector<DType> kFloating{kFloat64, kFloat32, kFloat16, kBFloat16};

}  // namespace

TEST_CASE(
    "tensors go to their slots and back, scaled and cast; gaps, undefined tensors and flags of 0 stay as they are") {
  const std::vector<int64_t> offsets{2, 40, 60, 61};
  for (const DType flat_dtype : kFloating) {
    for (const DType dtype : kFloating) {
      CAPTURE(name(flat_dtype));
      CAPTURE(name(dtype));
      const std::vector<Tensor> tensors{ramp(33, dtype), Tensor(), ramp(1, dtype, 9), ramp(5, dtype, 20)};
      const Tensor flat = kernels::cast(full({70}, -1, kFloat32), flat_dtype);
      kernels::bucket_flatten(flat, tensors, offsets, 0.5);
      std::vector<double> expected(70, -1);
      for (size_t i = 0; i < tensors.size(); ++i) {
        for (int64_t j = 0; tensors[i].defined() && j < tensors[i].numel(); ++j)
          expected[static_cast<size_t>(offsets[i] + j)] = 0.5 * tensors[i].to_vector<double>()[static_cast<size_t>(j)];
      }
      for (size_t i = 0; i < expected.size(); ++i)
        CHECK(flat.to_vector<double>()[i] == doctest::Approx(expected[i]).epsilon(0.005));

      const std::vector<Tensor> back{full({33}, 7, dtype), full({20}, 7, dtype), full({1}, 7, dtype),
                                     full({5}, 7, dtype)};
      const Tensor flags = kernels::cast(ones({4}), flat_dtype);
      kernels::fill(view::slice(flags, 0, 3, 4), 0);
      kernels::bucket_unflatten(flat, flags, back, offsets, 2);
      CHECK(back[0].to_vector<double>() == tensors[0].to_vector<double>());
      CHECK(back[1].to_vector<double>() == std::vector<double>(20, -2));
      CHECK(back[2].to_vector<double>() == std::vector<double>{9});
      CHECK(back[3].to_vector<double>() == std::vector<double>(5, 7));
      kernels::bucket_unflatten(flat, Tensor(), back, offsets, 2);
      CHECK(back[3].to_vector<double>() == tensors[3].to_vector<double>());
    }
  }
  // A tensor that already is its slot is scaled in place.
  const Tensor flat = ones({8});
  const std::vector<Tensor> slot{view::slice(flat, 0, 2, 6)};
  const std::vector<int64_t> two{2};
  kernels::bucket_flatten(flat, slot, two, 3);
  CHECK(flat.to_vector<double>() == std::vector<double>{1, 1, 3, 3, 3, 3, 1, 1});
}

TEST_CASE("sums of squares per slot, and the words that follow from them") {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor flat = full({100}, 2.0);
  const std::vector<int64_t> offsets{90, 0, 50, 50}, numels{10, 20, 0, 1};
  const Tensor sums = zeros({4}, kFloat64);
  kernels::bucket_sums_of_squares(flat, offsets, numels, sums);
  CHECK(sums.to_vector<double>() == std::vector<double>{40, 80, 0, 4});
  kernels::fill(flat, 1e30);  // its square overflows float32
  kernels::bucket_sums_of_squares(flat, offsets, numels, sums);
  CHECK(sums.to_vector<double>()[1] == doctest::Approx(20e60));
  kernels::fill(flat, std::nan(""));
  kernels::bucket_sums_of_squares(flat, offsets, numels, sums);
  CHECK(std::isnan(sums.to_vector<double>()[1]));
  CHECK(sums.to_vector<double>()[2] == 0);

  struct Row {
    std::vector<double> sums;
    bool non_finite;
    std::vector<double> words;
  };
  for (const Row& row : std::vector<Row>{{{3, 5}, false, {3, 9, 0, 0}},
                                         {{0.25}, true, {-2, 4, 0, 1}},
                                         {{0, 0, 0}, false, {0, 0, 1, 0}},
                                         {{}, false, {0, 0, 1, 0}},
                                         {{1, inf, 2}, false, {0, 0, 0, 1}},
                                         {{std::nan(""), 2}, false, {0, 0, 0, 1}},
                                         {{1e308, 1e308}, false, {0, 0, 0, 0}}}) {
    for (const DType dtype : kFloating) {
      const Tensor words = kernels::cast(full({4}, 77.0), dtype);
      const Tensor given = empty({static_cast<int64_t>(row.sums.size())}, kFloat64);
      std::copy(row.sums.begin(), row.sums.end(), given.data_ptr<double>());
      kernels::bucket_words(words, given, row.non_finite);
      CHECK(words.to_vector<double>() == row.words);
    }
  }
  // The square is that of the rounded value, which is what gets sent.
  const Tensor words = zeros({4}, kBFloat16);
  kernels::bucket_words(words, full({1}, 1e7, kFloat64), false);
  const auto sent = words.to_vector<double>();
  CHECK(sent[0] == doctest::Approx(std::log2(1e7)).epsilon(0.004));
  CHECK(kernels::cast(full({1}, sent[0] * sent[0], kFloat64), kBFloat16).to_vector<double>()[0] == sent[1]);

  const Tensor out = zeros({1}, kFloat64);
  const Tensor x = ramp(1300, kFloat32);
  kernels::bucket_probe(x, out);
  CHECK(out.to_vector<double>()[0] == kernels::probe(x));
  CHECK(out.to_vector<double>()[0] != 0);
}

TEST_CASE("what is not finite is found wherever it is, and nothing else is taken for it") {
  for (const DType dtype : kFloating) {
    CAPTURE(name(dtype));
    for (const int64_t n : {1, 31, 100, 1100, 200000}) {
      for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
        for (const float bad : {INFINITY, -INFINITY, NAN}) {
          Tensor x = full({n}, dtype == kFloat16 ? 65504 : -3e38, dtype);
          CHECK_FALSE(kernels::has_non_finite(x));
          kernels::fill(view::slice(x, 0, at, at + 1), bad);
          CHECK(kernels::has_non_finite(x));
        }
      }
    }
  }
}

TEST_CASE("a bucket's arguments that do not fit are named") {
  using doctest::Contains;
  const Tensor flat = zeros({20});
  const std::vector<Tensor> tensors{ones({8}), ones({4})};
  const auto flatten = [&](const Tensor& to, std::vector<Tensor> from, std::vector<int64_t> offsets) {
    kernels::bucket_flatten(to, from, offsets, 1);
  };
  CHECK_NOTHROW(flatten(flat, tensors, {12, 8}));  // the order does not matter
  CHECK_THROWS_WITH_AS(flatten(flat, tensors, {0, 7}), Contains("slot 0 [0, 8) and slot 1 [7, 11) overlap"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(flatten(flat, tensors, {0, 17}), Contains("slot 1 [17, 21) does not fit into flat"), ShapeError);
  CHECK_THROWS_AS(flatten(flat, tensors, {-1, 10}), ShapeError);
  CHECK_THROWS_WITH_AS(flatten(flat, tensors, {0}), Contains("expected one offset per slot, got 1 for 2"), ShapeError);
  CHECK_THROWS_WITH_AS(flatten(zeros({4, 5}), tensors, {0, 8}), Contains("flat must be 1-d"), ShapeError);
  CHECK_THROWS_AS(flatten(zeros({20}, kInt64), tensors, {0, 8}), DTypeError);
  CHECK_THROWS_WITH_AS(flatten(flat, {ones({2}), ones({2}, kFloat64)}, {0, 8}), Contains("tensors of one dtype"),
                       DTypeError);
  CHECK_THROWS_WITH_AS(flatten(flat, {ones({2}, kInt64)}, {0}), Contains("tensor 0 must be floating"), DTypeError);
  CHECK_THROWS_WITH_AS(flatten(flat, {view::slice(ones({8}), 0, 0, 8, 2)}, {0}),
                       Contains("tensor 0 must be contiguous"), ShapeError);
  const std::vector<int64_t> offsets{0, 8};
  CHECK_THROWS_WITH_AS(kernels::bucket_unflatten(flat, ones({3}), tensors, offsets, 1),
                       Contains("expected one flag per slot"), ShapeError);
  CHECK_THROWS_WITH_AS(kernels::bucket_unflatten(flat, ones({2}, kFloat64), tensors, offsets, 1),
                       Contains("flags must have the dtype of flat"), DTypeError);
  const std::vector<int64_t> numels{8, 4};
  CHECK_THROWS_AS(kernels::bucket_sums_of_squares(flat, offsets, numels, zeros({2})), DTypeError);
  CHECK_THROWS_AS(kernels::bucket_sums_of_squares(flat, offsets, numels, zeros({3}, kFloat64)), ShapeError);
  CHECK_THROWS_AS(kernels::bucket_sums_of_squares(flat, offsets, std::vector<int64_t>{9, 4}, zeros({2}, kFloat64)),
                  ShapeError);
  CHECK_THROWS_AS(kernels::bucket_sums_of_squares(flat, offsets, std::vector<int64_t>{1, -1}, zeros({2}, kFloat64)),
                  ShapeError);
  CHECK_THROWS_AS(kernels::bucket_words(zeros({5}), zeros({2}, kFloat64), false), ShapeError);
  CHECK_THROWS_AS(kernels::bucket_words(zeros({4}), zeros({2}), false), DTypeError);
  CHECK_THROWS_AS(kernels::bucket_probe(flat, zeros({1})), ShapeError);
}

TEST_CASE("equal elements do not cancel out in a probe, and it is linear") {
  for (const int64_t n : {2, 3, 4, 6, 8, 16, 63, 64, 512, 1000, 4096, 100000}) {
    CAPTURE(n);
    const double of_ones = kernels::probe(full({n}, 1.0, kFloat64));
    CHECK(std::abs(of_ones) > 0.02 * std::sqrt(static_cast<double>(n)));
    CHECK(kernels::probe(full({n}, -2.5, kFloat64)) == doctest::Approx(-2.5 * of_ones));
  }
}

}  // namespace brigade::test::bucket_test
