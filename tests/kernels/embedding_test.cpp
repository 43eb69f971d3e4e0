// Embedding gradients: sparse rows, mean reduction, padding, accumulation, compared with a plain loop.
#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/indexing.h>

#include <kernels/values.h>
#include <near.h>

#include <doctest/doctest.h>

namespace brigade::test::embedding_test {
using namespace brigade::kernels;
using test::at;
using test::random;

TEST_CASE("rows that are touched are added up, the others are zeros or stay as they were") {
  constexpr int64_t kRows = 4001;
  constexpr int64_t kCount = 90;
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kUInt8}) {
    CAPTURE(name(dtype));
    for (const int64_t width : {1, 3, 64}) {
      CAPTURE(width);
      std::vector<int64_t> chosen;
      std::vector<double> slopes;
      for (int64_t i = 0; i < kCount; ++i)
        chosen.push_back(i % 4 == 0 ? 7 : (i * 131) % kRows);
      for (int64_t i = 0; i < kCount * width; ++i)
        slopes.push_back(static_cast<double>(i * 5 % 3));
      const Tensor indices = tensor(chosen, {kCount});
      const Tensor grad = cast(tensor(slopes, {kCount, width}), dtype);
      for (const bool accumulate : {false, true}) {
        for (const bool mean : {false, true}) {
          if (mean && !is_floating_point(dtype)) continue;
          for (const int64_t padding_idx : {-1, 7}) {
            CAPTURE(accumulate);
            CAPTURE(mean);
            CAPTURE(padding_idx);
            std::vector<double> expected(static_cast<size_t>(kRows * width), 0);
            std::vector<double> times(kRows, 0);
            for (const int64_t row : chosen)
              times[static_cast<size_t>(row)] += 1;
            for (int64_t i = 0; i < kCount * width; ++i) {
              const auto row = static_cast<size_t>(chosen[static_cast<size_t>(i / width)]);
              if (static_cast<int64_t>(row) == padding_idx) continue;
              expected[row * width + i % width] += slopes[static_cast<size_t>(i)] / (mean ? times[row] : 1);
            }
            for (double& value : expected)
              value += accumulate ? 2 : 0;
            const Tensor out = full({kRows, width}, 2, dtype);
            embedding_backward(grad, indices,
                               {.rows = kRows,
                                .padding_idx = padding_idx,
                                .out = out,
                                .accumulate = accumulate,
                                .mean_over_positions = mean});
            const auto found = out.to_vector<double>();
            double worst = 0;
            for (size_t i = 0; i < found.size(); ++i)
              worst = test::worse(worst, std::abs(found[i] - expected[i]));
            CHECK(worst <= (mean ? dtype == kBFloat16 ? 0.02 : 0.002 : 0));
          }
        }
      }
    }
  }
  CHECK_THROWS_AS(embedding_backward(ones({2, 3}, kBool), zeros({2}, kInt64), {.rows = 2}), DTypeError);
}

TEST_CASE("embedding: rows by index; gradients of a row add up in order, whatever the dtype, on top of what is there") {
  const Tensor indices = tensor(std::vector<int64_t>{2, 0, 2, 4, 2, 0}, {2, 3});
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    const Tensor weight = cast(random({5, 7}, 1, kFloat64), dtype);
    const Tensor y = embedding(weight, indices);
    CHECK(y.sizes() == Shape{2, 3, 7});
    CHECK(y.dtype() == dtype);
    const Tensor grad = cast(random({2, 3, 7}, 2, kFloat64), dtype);
    const Tensor out = cast(random({5, 7}, 3, kFloat64), dtype);
    const Tensor before = clone(out);
    const Tensor fresh = embedding_backward(grad, indices, {.rows = 5, .padding_idx = 0});
    embedding_backward(grad, indices, {.rows = 5, .padding_idx = 0, .out = out, .accumulate = true});
    std::vector<double> expected(35, 0.0);
    for (int64_t i = 0; i < 6; ++i) {
      const int64_t row = indices.to_vector<int64_t>()[static_cast<size_t>(i)];
      for (int64_t k = 0; k < 7; ++k) {
        CHECK(at(y, i * 7 + k) == at(weight, row * 7 + k));
        if (row != 0) expected[static_cast<size_t>(row * 7 + k)] += at(grad, i * 7 + k);
      }
    }
    const double bound = dtype == kFloat64 ? 1e-15 : dtype == kFloat32 ? 1e-6 : dtype == kFloat16 ? 2e-3 : 2e-2;
    for (int64_t i = 0; i < 35; ++i) {
      CHECK(std::abs(at(fresh, i) - expected[static_cast<size_t>(i)]) <= bound * 4);
      CHECK(std::abs(at(out, i) - (at(before, i) + expected[static_cast<size_t>(i)])) <= bound * 4);
      if (i < 14 || i / 7 == 3) CHECK(at(out, i) == at(before, i));  // padding, and rows without an index
    }
  }
  // Large enough for several threads; the result has the same bits as one pass over the positions.
  const int64_t count = 5000;
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < count; ++i)
    chosen.push_back((i * 7919) % 301);
  const Tensor grad = random({count, 40}, 4, kFloat32);
  const Tensor found = embedding_backward(grad, tensor(chosen, {count}), {.rows = 301});
  std::vector<float> sums(301 * 40, 0.0F);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < 40; ++k)
      sums[static_cast<size_t>(chosen[static_cast<size_t>(i)] * 40 + k)] += grad.data_ptr<float>()[i * 40 + k];
  }
  CHECK(found.to_vector<float>() == sums);
  CHECK(embedding(random({3, 2}, 1, kFloat32), zeros({0, 4}, kInt64)).sizes() == Shape{0, 4, 2});
  CHECK(embedding_backward(zeros({0, 2}), zeros({0}, kInt64), {.rows = 3}).to_vector<float>() ==
        std::vector<float>(6, 0.0F));
  for (const int64_t wrong : {int64_t{5}, int64_t{-1}}) {
    CHECK_THROWS_WITH_AS(embedding(zeros({5, 2}), tensor(std::vector<int64_t>{0, wrong}, {2})),
                         doctest::Contains((std::to_string(wrong) + " at position 1 is not a row 0..4").c_str()),
                         IndexError);
  }
  CHECK_THROWS_AS(embedding(zeros({5, 2}), zeros({2})), DTypeError);
  CHECK_THROWS_AS(embedding(zeros({5}), zeros({2}, kInt64)), ShapeError);
}

}  // namespace brigade::test::embedding_test
