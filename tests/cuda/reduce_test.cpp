// Sums, means, and extremes: CUDA kernels, compared with the CPU's.
#include "on_device.h"

#include <brigade/kernels/reduce.h>

#include <limits>

namespace brigade::test::reduce_test {
using namespace brigade::kernels;

namespace {

// Another summation order: the error grows at most with the root of the length.
double sum_tolerance(DType dtype, int64_t length) {
  const double unit = dtype == kFloat64 ? 1e-15 : 1e-6;
  const double rounding = is_half(dtype) ? tolerance(dtype) : 0;
  return is_floating_point(dtype) ? 4 * unit * std::sqrt(static_cast<double>(length) + 1) + rounding : 0;
}

}  // namespace

TEST_CASE("sums and means over rows, columns, middles and scattered dimensions") {
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    struct Row {
      Shape sizes, dims;
    };
    for (const Row& row : std::vector<Row>{{{7}, {}},
                                           {{0}, {}},
                                           {{3, 0}, {1}},
                                           {{0, 3}, {1}},
                                           {{5, 33}, {1}},
                                           {{5, 33}, {0}},
                                           {{9, 513}, {1}},
                                           {{2, 1500}, {1}},
                                           {{1500, 2}, {0}},
                                           {{3, 20, 35}, {1}},
                                           {{3, 700, 2}, {1}},
                                           {{3, 512}, {1}},
                                           {{2, 2064}, {1}},
                                           {{33, 512}, {0}},
                                           {{2, 70, 256}, {1}},
                                           {{300, 256}, {0}},
                                           {{4, 5, 6, 7}, {0, 2}},
                                           {{4, 5, 6, 7}, {1, 3}},
                                           {{50001}, {}},
                                           {{}, {}}}) {
      CAPTURE(to_string(row.sizes));
      CAPTURE(to_string(row.dims));
      const Tensor x = numbers(row.sizes, dtype);
      const double bound = sum_tolerance(dtype, x.numel());
      CHECK(difference(sum(on_device(x), {.dims = row.dims}), sum(x, {.dims = row.dims})) <= bound);
      CHECK(difference(sum(on_device(x), {.dims = row.dims, .keepdim = true}),
                       sum(x, {.dims = row.dims, .keepdim = true})) <= bound);
      if (!is_floating_point(dtype)) continue;
      CHECK(difference(mean(on_device(x), {.dims = row.dims}), mean(x, {.dims = row.dims})) <= bound);
      const Tensor start = numbers(sum(x, {.dims = row.dims}).sizes(), dtype, 5);
      const Tensor here = clone(start);
      const Tensor there = on_device(start);
      sum(x, {.dims = row.dims, .out = here, .accumulate = true});
      sum(on_device(x), {.dims = row.dims, .out = there, .accumulate = true});
      CHECK(difference(there, here) <= 2 * bound);
    }
    const Tensor x = numbers({6, 40}, dtype);
    CHECK(difference(sum(view::transpose(on_device(x), 0, 1), {.dims = {0}}),
                     sum(view::transpose(x, 0, 1), {.dims = {0}})) <= sum_tolerance(dtype, 40));
  }
  // So long that the partial sums of a row are themselves a long row.
  for (const DType dtype : kFloatingDTypes) {
    const int64_t length = (int64_t{1} << 23) + 40000;
    CHECK(on_cpu(sum(on_device(full({length}, 0x1p-10, dtype)), {})).to_vector<double>()[0] ==
          doctest::Approx(static_cast<double>(length) * 0x1p-10).epsilon(tolerance(dtype)));
  }
  // The result has the same bits on each run.
  const Tensor x = on_device(numbers({300, 333}, kFloat32));
  const auto first = on_cpu(sum(x, {})).to_vector<float>();
  for (int i = 0; i < 5; ++i)
    CHECK(on_cpu(sum(x, {})).to_vector<float>() == first);
  CHECK_THROWS_AS(mean(on_device(ones({2}, kInt64)), {}), DTypeError);
  CHECK_THROWS_AS(sum(x, {.dims = {0, 0}}), ShapeError);
}

TEST_CASE("rows and columns that start where no vector may, rows of odd lengths") {
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    for (const auto& [rows, length] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 37}, {1, 517}, {1, 40001}, {3, 37}, {3, 48}, {3, 519}, {2, 1040}, {200, 256}}) {
      CAPTURE(rows);
      CAPTURE(length);
      const Tensor whole = numbers({rows * length + 1}, dtype);
      const auto late = [&](const Tensor& x) { return view::as_strided(x, {rows, length}, {length, 1}, 1); };
      const Tensor here = late(whole);
      const Tensor there = late(on_device(whole));
      CHECK(difference(sum(there, {.dims = {1}}), sum(here, {.dims = {1}})) <= sum_tolerance(dtype, length));
      CHECK(difference(sum(there, {.dims = {0}}), sum(here, {.dims = {0}})) <= sum_tolerance(dtype, rows));
      // Columns are summed in the same order wherever they start in memory.
      CHECK(difference(sum(clone(there), {.dims = {0}}), on_cpu(sum(there, {.dims = {0}}))) == 0);
      CHECK(difference(sum(on_device(here), {.dims = {1}}), sum(here, {.dims = {1}})) <= sum_tolerance(dtype, length));
    }
  }
}

TEST_CASE("extremes and where they are: the first of equals, and a NaN wins") {
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    for (const auto& [sizes, dim] : std::vector<std::pair<Shape, int>>{
             {{1}, 0}, {{31}, 0}, {{5, 32}, 1}, {{33, 4}, 0}, {{2, 700, 3}, 1}, {{0, 4}, 1}}) {
      CAPTURE(to_string(sizes));
      const Tensor x = numbers(sizes, dtype);  // integers contain duplicates
      const auto compare = [](const Extremes& found, const Extremes& expected) {
        CHECK(difference(found.values, expected.values) == 0);
        CHECK(difference(found.indices, expected.indices) == 0);
      };
      compare(kernels::max(on_device(x), dim, false), kernels::max(x, dim, false));
      compare(kernels::min(on_device(x), dim, true), kernels::min(x, dim, true));
      CHECK(difference(argmax(on_device(x), dim, false), argmax(x, dim, false)) == 0);
    }
  }
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const auto& [sizes, dim] : std::vector<std::pair<Shape, int>>{
             {{}, 0}, {{1}, 0}, {{5, 32}, 1}, {{33, 40}, 0}, {{2, 7, 3}, 1}, {{0, 4}, 1}}) {
      CAPTURE(to_string(sizes));
      const Extremes found = kernels::max(numbers(sizes, dtype), dim, false);
      const Tensor grad = numbers(found.values.sizes(), dtype, 7);
      CHECK(difference(extremes_backward(on_device(grad), on_device(found.indices), sizes, dim),
                       extremes_backward(grad, found.indices, sizes, dim)) == 0);
    }
  }
  CHECK_THROWS_AS(extremes_backward(on_device(zeros({2})), on_device(zeros({3}, kInt64)), {2, 4}, 1), ShapeError);
  Tensor x = numbers({200}, kFloat32);
  x.data_ptr<float>()[150] = x.data_ptr<float>()[77] = std::numeric_limits<float>::quiet_NaN();
  CHECK(on_cpu(argmax(on_device(x), 0, false)).to_vector<double>() == std::vector<double>{77});
  CHECK_THROWS_AS(kernels::max(on_device(zeros({2, 0})), 1, false), ShapeError);
}

}  // namespace brigade::test::reduce_test
