// Embedding rows and their gradients: CUDA kernels, compared with the CPU's.
#include "on_device.h"

#include <brigade/core/cuda/device.h>
#include <brigade/kernels/indexing.h>

namespace brigade::test::embedding_test {
using namespace brigade::kernels;

namespace {

// Indices 0..rows-1; a third of them are row 1, if it exists.
Tensor indices(const Shape& sizes, int64_t rows) {
  const Tensor result = empty(sizes, kInt64);
  for (int64_t i = 0; i < result.numel(); ++i)
    result.data_ptr<int64_t>()[i] = i % 3 == 0 ? std::min<int64_t>(1, rows - 1) : (i * 7919 + i / 7) % rows;
  return result;
}

// A row with many positions is summed in parts.
double sum_tolerance(DType dtype) { return dtype == kFloat64 ? 1e-13 : dtype == kFloat32 ? 2e-5 : tolerance(dtype); }

}  // namespace

TEST_CASE("embedding copies rows of any width, aligned or not") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const int64_t width : {0, 1, 3, 8, 64, 130, 1032}) {
      CAPTURE(width);
      const Tensor weight = numbers({11, width}, dtype);
      for (const Shape& sizes : std::vector<Shape>{{}, {0}, {1}, {5}, {3, 7}, {2, 2, 150}}) {
        CAPTURE(to_string(sizes));
        const Tensor chosen = indices(sizes, 11);
        CHECK(difference(embedding(on_device(weight), on_device(chosen)), embedding(weight, chosen)) == 0);
      }
    }
    const Tensor weight = numbers({9, 17}, dtype);
    const auto late = [](const Tensor& x) { return view::slice(x, 1, 1, 17); };
    const auto turned = [](const Tensor& x) { return view::transpose(x, 0, 1); };
    const Tensor chosen = indices({4, 3}, 9);
    CHECK(difference(embedding(late(on_device(weight)), turned(on_device(chosen))),
                     embedding(late(weight), turned(chosen))) == 0);
    const Tensor flat = numbers({1 + 8 * 8}, dtype);
    const auto unaligned = [](const Tensor& x) { return view::as_strided(x, {8, 8}, {8, 1}, 1); };
    CHECK(difference(embedding(unaligned(on_device(flat)), on_device(indices({5}, 8))),
                     embedding(unaligned(flat), indices({5}, 8))) == 0);
  }
}

TEST_CASE("gradients of rows: few and many rows, hot rows over several tiles, padding, on top of what is there") {
  struct Row {
    int64_t rows, count, width;
  };
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const Row& row : std::vector<Row>{{1, 0, 4},
                                           {1, 1, 1},
                                           {5, 3, 8},
                                           {1, 1100, 3},
                                           {3, 900, 16},
                                           {300, 700, 1},
                                           {2'000, 60, 2},
                                           {17, 40, 300},
                                           {17, 40, 1032}}) {
      CAPTURE(row.rows);
      CAPTURE(row.count);
      CAPTURE(row.width);
      const Tensor chosen = indices({row.count}, row.rows);
      const Tensor grad = numbers({row.count, row.width}, dtype, 2);
      for (const int64_t padding_idx : {int64_t{-1}, std::min<int64_t>(1, row.rows - 1)}) {
        CAPTURE(padding_idx);
        CHECK(difference(embedding_backward(on_device(grad), on_device(chosen),
                                            {.rows = row.rows, .padding_idx = padding_idx}),
                         embedding_backward(grad, chosen, {.rows = row.rows, .padding_idx = padding_idx})) <=
              sum_tolerance(dtype));
        const Tensor here = numbers({row.rows, row.width}, dtype, 3);
        const Tensor there = on_device(here);
        for (const bool accumulate : {true, false}) {
          embedding_backward(grad, chosen, {row.rows, padding_idx, here, accumulate});
          const Tensor result =
              embedding_backward(on_device(grad), on_device(chosen), {row.rows, padding_idx, there, accumulate});
          CHECK(result.is_same(there));
          CHECK(difference(there, here) <= sum_tolerance(dtype));
        }
      }
    }
  }
}

TEST_CASE(
    "gradients of rows that fit one tile have the bits of a sum in order of positions, and all the same each time") {
  const int64_t count = 5003;
  const int64_t rows = 66'000;  // three radix digits
  const Tensor chosen = empty({count}, kInt64);
  for (int64_t i = 0; i < count; ++i)
    chosen.data_ptr<int64_t>()[i] = (i % 700) * 94;  // up to eight positions each
  const Tensor grad = numbers({count, 4}, kFloat32, 2);
  const Tensor there = on_cpu(embedding_backward(on_device(grad), on_device(chosen), {.rows = rows}));
  std::vector<float> sums(static_cast<size_t>(rows) * 4, 0.0F);
  // A row whose positions cross a border between tiles of 256 is summed in two parts.
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < 4; ++k)
      sums[static_cast<size_t>(chosen.data_ptr<int64_t>()[i] * 4 + k)] += grad.data_ptr<float>()[i * 4 + k];
  }
  int64_t differ = 0;
  for (size_t i = 0; i < sums.size(); i += 4)
    differ += there.data_ptr<float>()[i] != sums[i];
  CHECK(differ <= count / 256);
  CHECK(difference(there, tensor(sums, {rows, 4})) <= 1e-5);
  for (int round = 0; round < 3; ++round)
    CHECK(difference(embedding_backward(on_device(grad), on_device(chosen), {.rows = rows}), there) == 0);
}

TEST_CASE("means over the positions of a row, and sums of integers") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const int64_t width : {1, 16}) {
      const Tensor chosen = indices({700}, 9);
      const Tensor grad = numbers({700, width}, dtype, 2);
      const Tensor here = numbers({9, width}, dtype, 3);
      const Tensor there = on_device(here);
      for (const bool accumulate : {true, false}) {
        embedding_backward(grad, chosen,
                           {.rows = 9, .out = here, .accumulate = accumulate, .mean_over_positions = true});
        embedding_backward(on_device(grad), on_device(chosen),
                           {.rows = 9, .out = there, .accumulate = accumulate, .mean_over_positions = true});
        CHECK(difference(there, here) <= sum_tolerance(dtype));
      }
    }
  }
  for (const DType dtype : {kInt64, kInt32, kUInt8}) {
    CAPTURE(name(dtype));
    const Tensor chosen = indices({700}, 9);
    const Tensor grad = numbers({700, 3}, dtype, 2);
    CHECK(difference(embedding_backward(on_device(grad), on_device(chosen), {.rows = 9}),
                     embedding_backward(grad, chosen, {.rows = 9})) == 0);
  }
  CHECK_THROWS_AS(embedding_backward(on_device(ones({2, 3}, kBool)), on_device(zeros({2}, kInt64)), {.rows = 9}),
                  DTypeError);
}

TEST_CASE("gradients of rows from strided, unaligned and many-dimensional gradients") {
  for (const DType dtype : kFloatingDTypes) {
    const Tensor chosen = indices({4, 6}, 5);
    const Tensor grad = numbers({6, 9, 4}, dtype, 2);
    const auto turned = [](const Tensor& x) { return view::slice(view::permute(x, {2, 0, 1}), 2, 1, 9); };
    CHECK(difference(embedding_backward(turned(on_device(grad)), on_device(chosen), {.rows = 5}),
                     embedding_backward(turned(grad), chosen, {.rows = 5})) <= sum_tolerance(dtype));
    const Tensor flat = numbers({1 + 24 * 8}, dtype, 3);
    const auto unaligned = [](const Tensor& x) { return view::as_strided(x, {4, 6, 8}, {48, 8, 1}, 1); };
    CHECK(difference(embedding_backward(unaligned(on_device(flat)), on_device(chosen), {.rows = 5}),
                     embedding_backward(unaligned(flat), chosen, {.rows = 5})) <= sum_tolerance(dtype));
  }
}

TEST_CASE("a bad index gives zeros, adds nothing, and is reported at the next synchronisation") {
  const Tensor weight = on_device(ones({5, 3}));
  for (const int64_t wrong : {int64_t{5}, int64_t{-1}, int64_t{1} << 40}) {
    const Tensor chosen = on_device(tensor<int64_t>({0, wrong, 4}));
    const Tensor y = embedding(weight, chosen);
    CHECK_THROWS_WITH_AS(
        cuda::synchronize(),
        doctest::Contains(("embedding: index " + std::to_string(wrong) + " at position 1 is not a row 0..4").c_str()),
        IndexError);
    CHECK(on_cpu(y).to_vector<float>() == std::vector<float>{1, 1, 1, 0, 0, 0, 1, 1, 1});
    const Tensor sums = embedding_backward(on_device(ones({3, 1})), chosen, {.rows = 5});
    CHECK_THROWS_WITH_AS(cuda::synchronize(), doctest::Contains("embedding_backward: index "), IndexError);
    CHECK(on_cpu(sums).to_vector<float>() == std::vector<float>{1, 0, 0, 0, 1});
  }
  CHECK_THROWS_AS(embedding(weight, on_device(zeros({2}))), DTypeError);
  CHECK_THROWS_AS(embedding(weight, zeros({2}, kInt64)), DeviceError);
  CHECK_THROWS_AS(embedding(on_device(ones({5})), on_device(zeros({2}, kInt64))), ShapeError);
  const Tensor two = on_device(zeros({2}, kInt64));
  CHECK_THROWS_WITH_AS(embedding_backward(on_device(ones({3, 2})), two, {.rows = 5}),
                       doctest::Contains("expected a gradient [2] x width"), ShapeError);
  CHECK_THROWS_WITH_AS(embedding_backward(on_device(ones({2, 2})), two, {.rows = 5, .out = on_device(ones({5, 3}))}),
                       doctest::Contains("out must be a contiguous float32 [5, 2]"), ShapeError);
}

}  // namespace brigade::test::embedding_test
