// Gradients of rows: few of many rows touched, means, padding, on top of what is there, against a plain loop.
#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/embedding.h>
#include <brigade/kernels/factory.h>

#include <near.h>

#include <doctest/doctest.h>

using namespace brigade;
using namespace brigade::kernels;

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
