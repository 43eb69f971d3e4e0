// Indexed reads and writes, and nonzero: CUDA kernels, compared with the CPU's.
#include "on_device.h"

#include <brigade/core/cuda/device.h>
#include <brigade/kernels/indexing.h>

#include <functional>

namespace brigade::test::gather_test {
using namespace brigade::kernels;

namespace {

Tensor indices(const Shape& sizes, int64_t count) {
  const Tensor result = empty(sizes, kInt64);
  for (int64_t i = 0; i < result.numel(); ++i)
    result.data_ptr<int64_t>()[i] = (i * 7919 + i / 7) % count;
  return result;
}

// The same numbers are summed in parts.
double sum_tolerance(DType dtype) { return dtype == kFloat64 ? 1e-13 : dtype == kFloat32 ? 1e-5 : tolerance(dtype); }

Scatter on_device(const Scatter& how) {
  Scatter there = how;
  if (how.source.defined()) there.source = test::on_device(how.source);
  return there;
}

}  // namespace

TEST_CASE("gather and scatter of any shape and dtype; the last of several sources stays") {
  struct Row {
    Shape x;
    int dim;
    Shape index;
  };
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    for (const Row& row : std::vector<Row>{{{5}, 0, {900}},
                                           {{5}, 0, {0}},
                                           {{40, 6}, 0, {7, 6}},
                                           {{4, 6}, 1, {4, 300}},
                                           {{4, 6}, 0, {2, 5}},
                                           {{3, 4, 5}, 1, {2, 6, 4}},
                                           {{3, 0, 5}, 1, {3, 0, 5}},
                                           {{}, 0, {}}}) {
      CAPTURE(to_string(row.x));
      CAPTURE(to_string(row.index));
      const Tensor x = numbers(row.x, dtype);
      const Tensor index = indices(row.index, row.x.empty() ? 1 : std::max<int64_t>(row.x[row.dim], 1));
      Shape longer = row.index;
      for (int64_t& size : longer)
        ++size;
      const Tensor source = numbers(longer, dtype, 3);
      const Tensor there = test::on_device(index);
      CHECK(difference(gather(test::on_device(x), row.dim, there), gather(x, row.dim, index)) == 0);
      for (const Scatter& how : {Scatter{.source = source}, Scatter{.value = 3}}) {
        CHECK(difference(scatter(test::on_device(x), row.dim, there, on_device(how)),
                         scatter(x, row.dim, index, how)) == 0);
      }
      if (dtype == kBool) continue;
      const Scatter added{.source = source, .add = true};
      CHECK(difference(scatter(test::on_device(x), row.dim, there, on_device(added)),
                       scatter(x, row.dim, index, added)) <= sum_tolerance(dtype));
    }
  }
}

TEST_CASE("slices along any dimension, and places that are all different") {
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    for (const Shape& sizes : std::vector<Shape>{{60}, {60, 3}, {2, 60, 16}, {3, 60, 1}}) {
      CAPTURE(to_string(sizes));
      const int dim = sizes[0] == 60 ? 0 : 1;
      const Tensor x = numbers(sizes, dtype);
      const Tensor index = indices({700}, 60);
      Shape source_sizes = sizes;
      source_sizes[dim] = 700;
      const Tensor source = numbers(source_sizes, dtype, 3);
      for (const Scatter& how : {Scatter{.source = source, .slices = true}, Scatter{.value = 1, .slices = true},
                                 Scatter{.source = source, .add = true, .slices = true}}) {
        if (how.add && dtype == kBool) continue;
        CHECK(difference(scatter(test::on_device(x), dim, test::on_device(index), on_device(how)),
                         scatter(x, dim, index, how)) <= (how.add ? 10 * sum_tolerance(dtype) : 0));
      }
    }
    const Tensor x = numbers({4, 8}, dtype);
    const Tensor index = view::expand(tensor<int64_t>({3, 0, 7}), {4, 3});
    const Scatter how{.source = numbers({4, 3}, dtype, 3), .distinct = true};
    CHECK(difference(scatter(test::on_device(x), 1, test::on_device(index), on_device(how)),
                     scatter(x, 1, index, how)) == 0);
  }
}

TEST_CASE("sums have the same bits each time") {
  const Tensor x = test::on_device(zeros({50, 3}));
  const Tensor index = test::on_device(indices({3000, 3}, 50));
  const Scatter how{.source = test::on_device(numbers({3000, 3}, kFloat32)), .add = true};
  const auto first = on_cpu(scatter(x, 0, index, how)).to_vector<float>();
  for (int i = 0; i < 3; ++i)
    CHECK(on_cpu(scatter(x, 0, index, how)).to_vector<float>() == first);
}

TEST_CASE("a bad index is passed over and told later, with the operation that met it") {
  const Tensor x = test::on_device(tensor(std::vector<float>{1, 2, 3, 4}, {2, 2}));
  const Tensor source = test::on_device(full({2, 2}, 9.0));
  const Tensor bad = test::on_device(tensor(std::vector<int64_t>{0, 1, 2, 1}, {2, 2}));
  const Tensor row = test::on_device(tensor<int64_t>({1, -1}));
  struct Row {
    const char* what;
    std::function<Tensor()> call;
    std::vector<float> left;
  };
  const std::vector<Row> rows{
      {"gather: index 2 at position 2 is not a place 0..1", [&] { return gather(x, 1, bad); }, {1, 2, 0, 4}},
      {"scatter: index 2 at position 2", [&] { return scatter(x, 1, bad, {.source = source}); }, {9, 9, 3, 9}},
      {"scatter_add: index 2 at position 2",
       [&] { return scatter(x, 1, bad, {.source = source, .add = true}); },
       {10, 11, 3, 13}},
      {"index_fill: index -1 at position 1 is not a slice 0..1",
       [&] { return scatter(x, 0, row, {.value = 5, .slices = true}); },
       {1, 2, 5, 5}},
      {"index_copy: index -1 at position 1",
       [&] { return scatter(x, 0, row, {.source = source, .slices = true}); },
       {1, 2, 9, 9}},
      {"index_add: index -1 at position 1",
       [&] { return scatter(x, 0, row, {.source = source, .add = true, .slices = true}); },
       {1, 2, 12, 13}},
  };
  for (const Row& each : rows) {
    CAPTURE(each.what);
    const Tensor y = each.call();
    CHECK_THROWS_WITH_AS(brigade::cuda::synchronize(), doctest::Contains(each.what), IndexError);
    brigade::cuda::synchronize();  // each error is reported once
    CHECK(on_cpu(y).to_vector<float>() == each.left);
  }
  CHECK_THROWS_AS(gather(x, 0, zeros({2, 2}, kInt64)), DeviceError);
  CHECK_THROWS_AS(scatter(x, 0, bad, {.source = zeros({2, 2})}), DeviceError);
}

TEST_CASE("the coordinates of what is not zero") {
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    for (const Shape& sizes : std::vector<Shape>{{}, {0}, {3, 0}, {7}, {3, 4, 5}, {3000}, {700, 401}}) {
      CAPTURE(to_string(sizes));
      Tensor x = numbers(sizes, dtype);
      if (is_floating_point(dtype))
        x = binary(x, cast(compare_scalar(x, 0.5, CompareOp::Greater), dtype), BinaryOp::Mul);
      CHECK(difference(nonzero(test::on_device(x)), nonzero(x)) == 0);
    }
  }
  const Tensor x = numbers({30, 20}, kInt32);
  CHECK(difference(nonzero(view::transpose(test::on_device(x), 0, 1)), nonzero(view::transpose(x, 0, 1))) == 0);
  const Tensor special = tensor<float>({0.0F, -0.0F, std::nanf(""), 1.0F});
  CHECK(difference(nonzero(test::on_device(special)), tensor(std::vector<int64_t>{2, 3}, {2, 1})) == 0);
}

TEST_CASE("ranges and identities are made on the device that is asked for") {
  CHECK(difference(arange(1, 4, 1, {kFloat32, kDevice}), arange(1, 4, 1, {kFloat32})) == 0);
  CHECK(difference(linspace(1, 4, 7, {kFloat64, kDevice}), linspace(1, 4, 7, {kFloat64})) == 0);
  CHECK(difference(eye(3, {kInt64, kDevice}), eye(3, {kInt64})) == 0);
  CHECK(eye(3, {kInt64, kDevice}).device() == kDevice);
}

}  // namespace brigade::test::gather_test
