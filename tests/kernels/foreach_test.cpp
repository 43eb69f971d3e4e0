// Operations on many gradients at once, compared with plain loops.
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/optimizer.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace brigade::test::foreach_test {
using doctest::Contains;
using test::row;

namespace {

using Values = std::vector<double>;
using List = std::vector<Tensor>;
const double kInf = std::numeric_limits<double>::infinity();
const std::vector<DType> kFloating{kFloat64, kFloat32, kFloat16, kBFloat16};

}  // namespace

TEST_CASE("unscale multiplies every gradient and finds what is not finite, wherever it is") {
  for (const DType dtype : kFloating) {
    CAPTURE(name(dtype));
    for (const double bad : {0.0, kInf, -kInf, std::nan("")}) {
      const List grads{row({2, 4}, dtype), row({}, dtype), row({8, bad, 16}, dtype)};
      const Tensor found = zeros({});
      kernels::foreach_unscale(grads, full({1}, 0.5), found);
      CHECK(grads[0].to_vector<double>() == Values{1, 2});
      CHECK(grads[2].to_vector<double>()[0] == 4);
      CHECK(grads[2].to_vector<double>()[2] == 8);
      CHECK(found.to_vector<double>()[0] == (std::isfinite(bad) ? 0 : 1));
    }
  }
  // A flag that is already set stays set.
  const Tensor found = ones({1});
  kernels::foreach_unscale(List{row({2})}, full({}, 0.5), found);
  CHECK(found.to_vector<double>() == Values{1});
  kernels::foreach_unscale(List{}, full({}, 0.5), found);
}

TEST_CASE("unscale by 1 only looks") {
  for (const DType dtype : kFloating) {
    CAPTURE(name(dtype));
    for (const double bad : {0.0, kInf}) {
      const Tensor turned = view::transpose(kernels::cast(full({2, 3}, 0.1, kFloat64), dtype), 0, 1);
      const List grads{row({0.1, bad, -0.3}, dtype), turned};
      const Values before = grads[0].to_vector<double>(), before_turned = turned.to_vector<double>();
      const Tensor found = zeros({});
      kernels::foreach_unscale(grads, ones({}), found);
      CHECK(grads[0].to_vector<double>() == before);
      CHECK(turned.to_vector<double>() == before_turned);
      CHECK(found.to_vector<double>()[0] == (std::isfinite(bad) ? 0 : 1));
    }
  }
}

TEST_CASE("the terms of a norm, per tensor") {
  for (const DType dtype : kFloating) {
    const Tensor wide = kernels::cast(full({2, 3}, -1, kFloat32), dtype);
    const List tensors{row({3, -4}, dtype), row({}, dtype), view::transpose(wide, 0, 1), row({1, std::nan("")}, dtype)};
    const Tensor out = full({4}, 7, kFloat64);
    const auto terms = [&](kernels::NormTerm term) {
      kernels::foreach_norm(tensors, term, out);
      const auto values = out.to_vector<double>();
      CHECK(std::isnan(values[3]));
      return Values(values.begin(), values.begin() + 3);
    };
    CHECK(terms(kernels::NormTerm::SumOfSquares) == Values{25, 0, 6});
    CHECK(terms(kernels::NormTerm::SumOfAbs) == Values{7, 0, 6});
    CHECK(terms(kernels::NormTerm::MaxAbs) == Values{4, 0, 1});
  }
}

TEST_CASE("scale multiplies by a number, and by one in a tensor") {
  for (const DType dtype : kFloating) {
    const Tensor wide = kernels::cast(ones({2, 3}), dtype);
    const List tensors{row({3, -4}, dtype), view::transpose(wide, 0, 1)};
    kernels::foreach_scale(tensors, 0.5, Tensor());
    CHECK(tensors[0].to_vector<double>() == Values{1.5, -2});
    kernels::foreach_scale(tensors, 0.5, full({}, 4.0));
    kernels::foreach_scale(tensors, 1, full({1}, 2, kFloat64));
    CHECK(tensors[0].to_vector<double>() == Values{6, -8});
    CHECK(wide.to_vector<double>() == Values(6, 2));
  }
}

TEST_CASE("clip bounds every element and lets a NaN be") {
  for (const DType dtype : kFloating) {
    CAPTURE(name(dtype));
    const Tensor wide = kernels::cast(full({2, 3}, 4.0), dtype);
    const List tensors{row({-3, 0.25, 3, kInf, -kInf}, dtype), row({}, dtype), view::transpose(wide, 0, 1),
                       row({std::nan("")}, dtype)};
    kernels::foreach_clip(tensors, 1.5);
    CHECK(tensors[0].to_vector<double>() == Values{-1.5, 0.25, 1.5, 1.5, -1.5});
    CHECK(wide.to_vector<double>() == Values(6, 1.5));
    CHECK(std::isnan(tensors[3].to_vector<double>()[0]));
  }
  kernels::foreach_clip(List{}, 1);
  CHECK_THROWS_AS(kernels::foreach_clip(List{row({1})}, -1), ValueError);
  CHECK_THROWS_AS(kernels::foreach_clip(List{row({1}), row({1}, kFloat32)}, 1), DTypeError);
}

TEST_CASE("large tensors: every piece counts, and the terms do not depend on the threads") {
  for (const DType dtype : kFloating) {
    CAPTURE(name(dtype));
    const int64_t n = 150001;
    const auto big = [&] { return kernels::cast(full({n}, 0.5, kFloat32), dtype); };
    const List tensors{big(), row({2, 2}, dtype), big()};
    const Tensor out = zeros({3}, kFloat64);
    kernels::foreach_norm(tensors, kernels::NormTerm::SumOfSquares, out);
    CHECK(out.to_vector<double>() == Values{0.25 * static_cast<double>(n), 8, 0.25 * static_cast<double>(n)});
    kernels::foreach_norm(tensors, kernels::NormTerm::SumOfAbs, out);
    CHECK(out.to_vector<double>() == Values{0.5 * static_cast<double>(n), 4, 0.5 * static_cast<double>(n)});
    kernels::foreach_scale(tensors, 2, Tensor());
    kernels::foreach_norm(tensors, kernels::NormTerm::SumOfAbs, out);
    CHECK(out.to_vector<double>() == Values{static_cast<double>(n), 8, static_cast<double>(n)});
    kernels::fill(view::slice(tensors[2], 0, n - 1, n), std::nan(""));
    const Tensor found = zeros({});
    kernels::foreach_unscale(tensors, full({}, 0.5), found);
    CHECK(found.to_vector<double>() == Values{1});
    kernels::foreach_norm(tensors, kernels::NormTerm::MaxAbs, out);
    CHECK(out.to_vector<double>()[0] == 0.5);
    CHECK(std::isnan(out.to_vector<double>()[2]));
    kernels::foreach_clip(tensors, 0.25);
    kernels::foreach_norm(List{tensors[0]}, kernels::NormTerm::SumOfAbs, view::slice(out, 0, 0, 1));
    CHECK(out.to_vector<double>()[0] == 0.25 * static_cast<double>(n));
  }
}

TEST_CASE("arguments of the kernels over many tensors that do not fit are named") {
  const List mixed{row({1}), row({1}, kFloat32)}, whole{ones({2}, kInt64)}, grads{row({1}), row({2, 3})};
  const Tensor one = ones({1});
  CHECK_THROWS_WITH_AS(kernels::foreach_unscale(mixed, one, one), Contains("one call per dtype"), DTypeError);
  CHECK_THROWS_AS(kernels::foreach_scale(whole, 2, Tensor()), DTypeError);
  CHECK_THROWS_AS(kernels::foreach_norm(whole, kernels::NormTerm::MaxAbs, zeros({1}, kFloat64)), DTypeError);
  CHECK_THROWS_WITH_AS(kernels::foreach_unscale(grads, ones({2}), one), Contains("inv_scale must have one element"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(kernels::foreach_unscale(grads, one, Tensor()), Contains("found_inf must have one element"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(kernels::foreach_unscale(grads, ones({1}, kFloat64), one), Contains("must be float32"),
                       DTypeError);
  CHECK_THROWS_AS(kernels::foreach_norm(grads, kernels::NormTerm::MaxAbs, zeros({2})), DTypeError);
  CHECK_THROWS_AS(kernels::foreach_norm(grads, kernels::NormTerm::MaxAbs, zeros({3}, kFloat64)), ShapeError);
  CHECK_THROWS_WITH_AS(kernels::foreach_scale(grads, 1, ones({1}, kInt64)), Contains("by must be float32 or float64"),
                       DTypeError);
  CHECK_THROWS_AS(kernels::foreach_scale(grads, 1, ones({2})), ShapeError);
}

}  // namespace brigade::test::foreach_test
