// Helpers for the tests of reductions: numbers, shapes and dimensions to reduce, and the float64 slice behind each
// element of a result.
#pragma once

#include <brigade/core/shape.h>

#include <kernels/values.h>

#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace brigade::test {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Slice = std::vector<double>;

// The input elements that each element of the result reduces, in order.
inline std::vector<Slice> slices_of(const Tensor& x, const Shape& dims) {
  std::vector<bool> is_reduced(static_cast<size_t>(x.dim()), dims.empty());
  for (int64_t dim : x.dim() == 0 ? Shape{} : dims)
    is_reduced[static_cast<size_t>(wrap_dim(dim, x.dim()))] = true;
  int64_t count = 1;
  for (int d = 0; d < x.dim(); ++d)
    count *= is_reduced[static_cast<size_t>(d)] ? 1 : x.sizes()[d];
  std::vector<Slice> slices(static_cast<size_t>(count));
  const auto values = x.to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i);
    int64_t slice = 0, stride = 1;
    for (int d = x.dim() - 1; d >= 0; --d) {
      if (!is_reduced[static_cast<size_t>(d)]) {
        slice += rest % x.sizes()[d] * stride;
        stride *= x.sizes()[d];
      }
      rest /= x.sizes()[d];
    }
    slices[static_cast<size_t>(slice)].push_back(values[i]);
  }
  return slices;
}

inline void check_slices(const Tensor& found, const Tensor& x, const Shape& dims, double tolerance,
                         const std::function<double(const Slice&)>& plain) {
  const auto values = found.to_vector<double>();
  const auto slices = slices_of(x, dims);
  REQUIRE(values.size() == slices.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = plain(slices[i]);
    CHECK_MESSAGE(is_close(values[i], expected, tolerance), "slice " << i << ": " << values[i] << ", not " << expected);
  }
}

// Normal numbers; absolute values for integer dtypes.
inline Tensor normal_numbers(const Shape& sizes, DType dtype, uint64_t seed = 1) {
  if (is_floating_point(dtype)) return random(sizes, seed, dtype);
  const Tensor doubled = kernels::binary_scalar(random(sizes, seed, kFloat64), 2.0, kernels::BinaryOp::Mul, false);
  return kernels::cast(kernels::unary(doubled, kernels::UnaryOp::Abs), dtype);
}

// Rows, columns, middle dimensions, and nonadjacent dimensions.
struct ReducedRow {
  Shape sizes, dims;
};
inline const std::vector<ReducedRow> kReducedRows{
    {{7}, {}},        {{0}, {}},           {{0, 3}, {1}},       {{5, 33}, {1}},
    {{5, 33}, {0}},   {{3, 70, 5}, {1}},   {{2, 300, 3}, {-2}}, {{130, 300}, {0}},
    {{2, 2500}, {1}}, {{4, 5, 6}, {0, 2}}, {{4, 5, 6}, {0, 1}}, {{4, 5, 6}, {2, 1}},
    {{}, {}},         {{}, {0}},           {{3, 1}, {1}},       {{131072 * 2 + 77}, {}}};

// Calls body(row, dtype) for each row and dtype.
template <class DTypes, class Body>
void for_reduced_rows(const DTypes& dtypes, Body body) {
  for (const DType dtype : dtypes) {
    for (const ReducedRow& row : kReducedRows) {
      CAPTURE(name(dtype));
      CAPTURE(to_string(row.sizes));
      CAPTURE(to_string(row.dims));
      body(row, dtype);
    }
  }
}

// Reducing a view gives the same result as reducing its copy.
template <class Reduce>
void check_views(Reduce&& reduce) {
  const Tensor x = normal_numbers({6, 5, 8}, kFloat32);
  for (const Tensor& seen :
       {view::transpose(x, 0, 2), view::slice(x, 1, 1, 5, 2), view::expand(view::slice(x, 1, 2, 3), {6, 4, 8})}) {
    const Tensor copy = kernels::clone(seen);
    for (const Shape& dims : {Shape{0}, Shape{1}, Shape{2}, Shape{0, 2}})
      CHECK(reduce(seen, dims).template to_vector<float>() == reduce(copy, dims).template to_vector<float>());
  }
}

// Calls body with a slice of `length` normal numbers that starts with `first` and ends with `last`: a vector, and a
// matrix with three such columns; short and long.
template <class Body>
void with_ends(double first, double last, Body&& body) {
  for (const int64_t inner : {1, 3}) {
    for (const int64_t length : {3, 200}) {
      CAPTURE(inner);
      CAPTURE(length);
      const Tensor x = normal_numbers({length, inner}, kFloat32);
      for (int64_t j = 0; j < inner; ++j) {
        x.data_ptr<float>()[j] = static_cast<float>(first);
        x.data_ptr<float>()[(length - 1) * inner + j] = static_cast<float>(last);
      }
      body(inner == 1 ? view::squeeze(x, 1) : x);
    }
  }
}
// The result is NaN for a slice with a NaN at either end, even opposite an infinity.
template <class Reduce>
void check_nan_wins(Reduce&& reduce) {
  for (const auto& [first, last] : {std::pair{kNaN, 0.0}, {0.0, kNaN}, {kNaN, kInfinity}, {kInfinity, kNaN}})
    with_ends(first, last, [&](const Tensor& x) { CHECK(std::isnan(at(reduce(x), 0))); });
}

}  // namespace brigade::test
