// Indexed reads and writes, and nonzero, compared with plain loops.
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/indexing.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <limits>

namespace brigade::test::gather_test {
using namespace brigade::kernels;

namespace {

// Whole numbers 0..6, exact in every dtype; their sums stay below 256.
Tensor whole(const Shape& sizes, DType dtype, int64_t step = 5) {
  std::vector<double> values;
  for (int64_t i = 0; i < sizes.numel(); ++i)
    values.push_back(static_cast<double>(i * step % 7));
  return cast(tensor(values, sizes), dtype);
}

Tensor indices(const Shape& sizes, int64_t count) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < sizes.numel(); ++i)
    values.push_back((i * 7 + i / 3) % count);
  return tensor(values, sizes);
}

int64_t flat(const Shape& sizes, const Shape& at) {
  int64_t result = 0;
  for (int d = 0; d < sizes.size(); ++d)
    result = result * sizes[d] + at[d];
  return result;
}
Shape coordinates(const Shape& sizes, int64_t i) {
  Shape at = sizes;
  for (int d = sizes.size() - 1; d >= 0; --d) {
    at[d] = i % sizes[d];
    i /= sizes[d];
  }
  return at;
}

struct Row {
  Shape x;
  int dim;
  Shape index;
};
const std::vector<Row> kRows{
    {{5}, 0, {9}},
    {{5}, 0, {0}},
    {{4, 6}, 0, {7, 6}},
    {{4, 6}, 1, {4, 3}},
    {{4, 6}, 0, {2, 5}},
    {{4, 6}, 1, {3, 8}},
    {{3, 4, 5}, 1, {3, 6, 5}},
    {{3, 4, 70}, 1, {2, 6, 67}},
    {{3, 4, 5}, 2, {2, 1, 9}},
    {{2, 3, 2, 3}, 2, {2, 3, 5, 3}},
    {{}, 0, {}},
};

}  // namespace

TEST_CASE("gather and scatter of any shape and dtype do what a loop does") {
  for (const DType dtype : test::kEveryDType) {
    CAPTURE(name(dtype));
    for (const Row& row : kRows) {
      CAPTURE(to_string(row.x));
      CAPTURE(to_string(row.index));
      const Tensor x = whole(row.x, dtype);
      const Tensor index = indices(row.index, row.x.empty() ? 1 : row.x[row.dim]);
      Shape longer = row.index;
      for (int64_t& size : longer)
        ++size;
      const Tensor source = whole(longer, dtype, 3);
      const auto values = x.to_vector<double>();
      const auto places = index.to_vector<int64_t>();
      const auto sources = source.to_vector<double>();
      std::vector<double> gathered;
      std::vector<double> written = values;
      std::vector<double> filled = values;
      std::vector<double> added = values;
      for (int64_t i = 0; i < index.numel(); ++i) {
        Shape at = coordinates(row.index, i);
        const double from = sources[static_cast<size_t>(flat(longer, at))];
        if (!at.empty()) at[row.dim] = places[static_cast<size_t>(i)];
        const auto place = static_cast<size_t>(flat(row.x, at));
        gathered.push_back(values[place]);
        written[place] = from;
        filled[place] = 3;
        added[place] += from;
      }
      CHECK(gather(x, row.dim, index).to_vector<double>() == gathered);
      CHECK(gather(x, row.dim, index).sizes() == row.index);
      CHECK(scatter(x, row.dim, index, {.source = source}).to_vector<double>() == written);
      CHECK(x.to_vector<double>() == values);
      if (dtype == kBool) continue;
      CHECK(scatter(x, row.dim, index, {.value = 3}).to_vector<double>() == filled);
      const Tensor sum = scatter(x, row.dim, index, {.source = source, .add = true});
      CHECK(sum.to_vector<double>() == added);
      CHECK(sum.dtype() == dtype);
    }
  }
}

TEST_CASE("strided tensors, sources and indices") {
  const Tensor x = view::transpose(whole({6, 4}, kFloat32), 0, 1);
  const Tensor index = view::slice(indices({4, 10}, 6), 1, 0, 10, 2);
  const Tensor source = view::transpose(whole({5, 4}, kFloat32, 3), 0, 1);
  CHECK(gather(x, 1, index).to_vector<float>() == gather(clone(x), 1, clone(index)).to_vector<float>());
  for (const bool add : {false, true}) {
    CHECK(scatter(x, 1, index, {.source = source, .add = add}).to_vector<float>() ==
          scatter(clone(x), 1, clone(index), {.source = clone(source), .add = add}).to_vector<float>());
  }
  // An expanded index refers to the same element in each column.
  const Tensor stretched = view::expand(tensor(std::vector<int64_t>{3, 1}, {2, 1}), {2, 6});
  CHECK(gather(x, 0, stretched).to_vector<float>() == gather(x, 0, clone(stretched)).to_vector<float>());
}

TEST_CASE("whole slices are added, copied and filled along any dimension") {
  for (const DType dtype : test::kEveryDType) {
    CAPTURE(name(dtype));
    for (const Shape& sizes : std::vector<Shape>{{6}, {6, 3}, {2, 6, 3}, {2, 6, 150}, {3, 6}}) {
      CAPTURE(to_string(sizes));
      const int dim = sizes[0] == 6 ? 0 : 1;
      const Tensor x = whole(sizes, dtype);
      const Tensor index = tensor<int64_t>({4, 0, 4, 5});
      Shape source_sizes = sizes;
      source_sizes[dim] = 4;
      const Tensor source = whole(source_sizes, dtype, 3);
      // Equivalent to scatter with an index expanded over the slices.
      Shape column = Shape::filled(sizes.size(), 1);
      column[dim] = 4;
      const Tensor all = view::expand(view::as_strided(index, column, contiguous_strides(column), 0), source_sizes);
      for (const bool add : {false, true}) {
        if (add && dtype == kBool) continue;
        CHECK(scatter(x, dim, index, {.source = source, .add = add, .slices = true}).to_vector<double>() ==
              scatter(x, dim, all, {.source = source, .add = add}).to_vector<double>());
      }
      CHECK(scatter(x, dim, index, {.value = 2, .slices = true}).to_vector<double>() ==
            scatter(x, dim, all, {.value = 2}).to_vector<double>());
    }
  }
}

TEST_CASE("half types are added in float and rounded once") {
  // 2048 + 1 rounds to 2048 in float16: adding the ones separately would change nothing.
  const Tensor sum = scatter(tensor<float16>({float16(2048.0F), float16(1.0F)}), 0, zeros({100}, kInt64),
                             {.source = ones({100}, kFloat16), .add = true});
  CHECK(sum.to_vector<float>() == std::vector<float>{2148, 1});
}

TEST_CASE("many threads write what one would") {
  const int64_t count = 40000;
  const Tensor x = zeros({1000, 80});
  const Tensor index = indices({count / 8, 80}, 1000);
  const Tensor source = whole({count / 8, 80}, kFloat32);
  const auto places = index.to_vector<int64_t>();
  const auto values = source.to_vector<float>();
  std::vector<float> written(1000 * 80, 0);
  std::vector<float> added(1000 * 80, 0);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto place = static_cast<size_t>(places[i]) * 80 + i % 80;
    written[place] = values[i];
    added[place] += values[i];
  }
  CHECK(scatter(x, 0, index, {.source = source}).to_vector<float>() == written);
  CHECK(scatter(x, 0, index, {.source = source, .add = true}).to_vector<float>() == added);
}

TEST_CASE("bad indices are named with their position, in whatever is read or written") {
  const Tensor x = whole({3, 4}, kFloat32);
  const Tensor bad = tensor(std::vector<int64_t>{0, 1, 2, 3, 0, 4}, {2, 3});
  CHECK_THROWS_WITH_AS(gather(x, 1, bad), "gather: index 4 at position 5 is not a place 0..3", IndexError);
  CHECK_THROWS_WITH_AS(scatter(x, 1, bad, {.source = x}), "scatter: index 4 at position 5 is not a place 0..3",
                       IndexError);
  CHECK_THROWS_WITH_AS(scatter(x, 1, bad, {.source = x, .add = true}),
                       "scatter_add: index 4 at position 5 is not a place 0..3", IndexError);
  const Tensor negative = tensor<int64_t>({0, -1});
  CHECK_THROWS_WITH_AS(scatter(x, 0, negative, {.value = 1, .slices = true}),
                       "index_fill: index -1 at position 1 is not a slice 0..2", IndexError);
  const Tensor two = view::slice(x, 0, 0, 2);
  CHECK_THROWS_WITH_AS(scatter(x, 0, negative, {.source = two, .slices = true}), doctest::Contains("index_copy"),
                       IndexError);
  CHECK_THROWS_WITH_AS(scatter(x, 0, negative, {.source = two, .add = true, .slices = true}),
                       doctest::Contains("index_add"), IndexError);
}

TEST_CASE("shapes and dtypes that do not fit are refused") {
  const Tensor x = whole({3, 4}, kFloat32);
  const Tensor index = indices({3, 4}, 3);
  CHECK_THROWS_WITH_AS(gather(x, 0, indices({3}, 3)), doctest::Contains("as many dimensions as [3, 4]"), ShapeError);
  CHECK_THROWS_AS(gather(x, 0, indices({3, 5}, 3)), ShapeError);
  CHECK_THROWS_WITH_AS(gather(x, 0, x), doctest::Contains("expected int64 indices"), DTypeError);
  CHECK_THROWS_AS(scatter(x, 0, indices({2, 5}, 3), {.value = 0}), ShapeError);
  CHECK_THROWS_WITH_AS(scatter(x, 0, index, {.source = whole({3, 3}, kFloat32)}),
                       doctest::Contains("a source of at least [3, 4]"), ShapeError);
  CHECK_THROWS_WITH_AS(scatter(x, 0, index, {.source = whole({3, 4}, kFloat64)}), doctest::Contains("dtype float32"),
                       DTypeError);
  CHECK_THROWS_WITH_AS(scatter(whole({3}, kBool), 0, indices({3}, 3), {.source = whole({3}, kBool), .add = true}),
                       doctest::Contains("bool"), DTypeError);
  CHECK_THROWS_AS(scatter(x, 0, index, {.value = 0, .slices = true}), ShapeError);
  CHECK_THROWS_AS(scatter(x, 0, indices({2}, 3), {.source = x, .slices = true}), ShapeError);
  CHECK_THROWS_AS(scatter(ones({}), 0, zeros({2}, kInt64), {.source = ones({}), .slices = true}), ShapeError);
}

TEST_CASE("the coordinates of what is not zero") {
  for (const DType dtype : test::kEveryDType) {
    CAPTURE(name(dtype));
    for (const Shape& sizes : std::vector<Shape>{{}, {0}, {5, 0}, {7}, {3, 4}, {2, 3, 4}, {300, 211}}) {
      CAPTURE(to_string(sizes));
      const Tensor x = whole(sizes, dtype);
      const auto values = x.to_vector<double>();
      std::vector<int64_t> expected;
      int64_t count = 0;
      for (int64_t i = 0; i < x.numel(); ++i) {
        if (values[static_cast<size_t>(i)] == 0) continue;
        ++count;
        for (const int64_t at : coordinates(sizes, i))
          expected.push_back(at);
      }
      const Tensor found = nonzero(x);
      CHECK(found.sizes() == Shape{count, sizes.size()});
      CHECK(found.to_vector<int64_t>() == expected);
    }
  }
  CHECK(nonzero(tensor<float>({0.0F, -0.0F, std::numeric_limits<float>::quiet_NaN(), 1e-40F})).to_vector<int64_t>() ==
        std::vector<int64_t>{2, 3});
  CHECK(nonzero(view::transpose(tensor(std::vector<float>{0, 1, 2, 0}, {2, 2}), 0, 1)).to_vector<int64_t>() ==
        std::vector<int64_t>{0, 1, 1, 0});
}

}  // namespace brigade::test::gather_test
