// Kernels over many tensors: CUDA, compared with the CPU's. (Optimizer steps: optimizer_test.cpp.)
#include "tensor_pairs.h"

#include <brigade/kernels/optimizer.h>

#include <limits>

namespace brigade::test::foreach_test {
using namespace brigade::kernels;

TEST_CASE("unscale: every place of what is not finite is seen, and found_inf stays when all is well") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const int64_t late : {0, 1}) {
      const Pair grads(kMixed, dtype, 1, late);
      const Tensor found = on_device(zeros({}));
      foreach_unscale(grads.here, full({1}, 0.3), zeros({}));
      foreach_unscale(grads.there, on_device(full({1}, 0.3)), found);
      CHECK(grads.difference() == 0);
      CHECK(on_cpu(found).to_vector<float>() == std::vector<float>{0});
    }
    for (const auto& [tensor, at] : std::vector<std::pair<size_t, int64_t>>{{0, 0}, {0, 19999}, {1, 0}, {4, 8192}}) {
      for (const float bad : {nan, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
        const Pair grads(kMixed, dtype, 1);
        fill(view::slice(grads.there[tensor], 0, at, at + 1), bad);
        const Tensor found = on_device(zeros({1}));
        foreach_unscale(grads.there, on_device(full({}, 0.5)), found);
        CHECK(on_cpu(found).to_vector<float>() == std::vector<float>{1});
        // All other elements are unscaled nevertheless.
        fill(view::slice(grads.here[tensor], 0, at, at + 1), bad);
        foreach_unscale(grads.here, full({}, 0.5), zeros({}));
        CHECK(grads.difference() == 0);
      }
    }
  }
  // With a factor of 1, only the check for non-finite values runs.
  const Pair grads(kMixed, kFloat16, 1, 1);
  foreach_unscale(grads.there, on_device(ones({1})), on_device(zeros({})));
  CHECK(grads.difference() == 0);
  const Tensor found = on_device(ones({1}));
  foreach_unscale(Pair({3}, kFloat32, 1).there, on_device(ones({1})), found);
  CHECK(on_cpu(found).to_vector<float>() == std::vector<float>{1});
}

TEST_CASE("terms of norms: the CPU's, and the same bits each time") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const auto& sizes : {kMixed, many()}) {
      for (const int64_t late : {0, 1}) {
        const Pair tensors(sizes, dtype, 1, late);
        const auto count = static_cast<int64_t>(sizes.size());
        for (const NormTerm term : {NormTerm::SumOfSquares, NormTerm::SumOfAbs, NormTerm::MaxAbs}) {
          CAPTURE(static_cast<int>(term));
          const Tensor here = empty({count}, kFloat64);
          const Tensor there = empty({count}, {kFloat64, kDevice});
          foreach_norm(tensors.here, term, here);
          foreach_norm(tensors.there, term, there);
          CHECK(difference(there, here) <= (term == NormTerm::MaxAbs ? 0 : dtype == kFloat64 ? 1e-13 : 1e-5));
          const auto first = on_cpu(there).to_vector<double>();
          foreach_norm(tensors.there, term, there);
          CHECK(on_cpu(there).to_vector<double>() == first);
        }
      }
    }
  }
  const Tensor out = empty({2}, {kFloat64, kDevice});
  for (const NormTerm term : {NormTerm::SumOfSquares, NormTerm::SumOfAbs, NormTerm::MaxAbs}) {
    for (const int64_t at : {0, 8191, 8192, 9999}) {
      const Tensor x = numbers({10000}, kFloat32);
      fill(view::slice(x, 0, at, at + 1), std::nan(""));
      foreach_norm(std::vector<Tensor>{on_device(x), on_device(ones({3}))}, term, out);
      CHECK(std::isnan(on_cpu(out).to_vector<double>()[0]));
      CHECK(on_cpu(out).to_vector<double>()[1] == (term == NormTerm::MaxAbs ? 1 : 3));
    }
  }
}

TEST_CASE("scaling by a number and by one on the device; strided tensors") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const int64_t late : {0, 1}) {
      for (const auto& sizes : {kMixed, many()}) {
        const Pair tensors(sizes, dtype, 1, late);
        foreach_scale(tensors.here, 0.3, Tensor());
        foreach_scale(tensors.there, 0.3, Tensor());
        foreach_scale(tensors.here, 0.7, full({}, 1.3));
        foreach_scale(tensors.there, 0.7, on_device(full({}, 1.3)));
        foreach_scale(tensors.here, 1, full({1}, 0.1, kFloat64));
        foreach_scale(tensors.there, 1, on_device(full({1}, 0.1, kFloat64)));
        CHECK(tensors.difference() == 0);
      }
    }
    const Tensor x = numbers({9, 70}, dtype, 2);
    const Tensor y = on_device(x);
    const std::vector<Tensor> turned{view::transpose(x, 0, 1)}, device_turned{view::transpose(y, 0, 1)};
    foreach_scale(turned, 3, Tensor());
    foreach_scale(device_turned, 3, Tensor());
    CHECK(difference(y, x) == 0);
    foreach_unscale(turned, full({}, 0.1), zeros({}));
    foreach_unscale(device_turned, on_device(full({}, 0.1)), on_device(zeros({})));
    CHECK(difference(y, x) == 0);
    const Tensor here = empty({1}, kFloat64);
    const Tensor there = empty({1}, {kFloat64, kDevice});
    foreach_norm(turned, NormTerm::MaxAbs, here);
    foreach_norm(device_turned, NormTerm::MaxAbs, there);
    CHECK(difference(there, here) == 0);
  }
}

TEST_CASE("clipping by value") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const int64_t late : {0, 1}) {
      for (const auto& sizes : {kMixed, many()}) {
        const Pair tensors(sizes, dtype, 1, late);
        for (const Tensor& x : tensors.here)
          kernels::scale_inplace(x, -1);
        foreach_scale(tensors.there, -1, Tensor());
        foreach_clip(tensors.here, 0.3);
        foreach_clip(tensors.there, 0.3);
        CHECK(tensors.difference() == 0);
      }
    }
    const Tensor x = on_device(numbers({9, 70}, dtype, 2));
    fill(view::slice(x, 0, 3, 4), std::nan(""));
    const std::vector<Tensor> turned{view::transpose(x, 0, 1)};
    foreach_clip(turned, 0.25);
    for (const double v : on_cpu(view::slice(x, 0, 0, 3)).to_vector<double>())
      CHECK(std::abs(v) <= 0.25);
    CHECK(std::isnan(on_cpu(view::slice(x, 0, 3, 4)).to_vector<double>()[0]));
  }
}

TEST_CASE("tensors on two devices are refused") {
  const std::vector<Tensor> both{on_device(ones({3})), ones({3})}, one{on_device(ones({3}))};
  CHECK_THROWS_WITH_AS(foreach_scale(both, 2, Tensor()), doctest::Contains("one call per device"), DeviceError);
  CHECK_THROWS_AS(foreach_scale(one, 2, ones({})), DeviceError);
  CHECK_THROWS_AS(foreach_unscale(one, ones({}), on_device(ones({}))), DeviceError);
  CHECK_THROWS_AS(foreach_unscale(one, on_device(ones({})), ones({})), DeviceError);
  CHECK_THROWS_AS(foreach_norm(one, NormTerm::MaxAbs, zeros({1}, kFloat64)), DeviceError);
  CHECK_THROWS_AS(foreach_sgd_step(both, both, {}, SgdParams{0.1, 0, 0, 0, false, false, false}), DeviceError);
  CHECK_THROWS_AS(
      foreach_sgd_step(one, std::vector<Tensor>{ones({3})}, {}, SgdParams{0.1, 0, 0, 0, false, false, false}),
      ShapeError);
  // Nothing changed.
  CHECK(on_cpu(one[0]).to_vector<float>() == std::vector<float>(3, 1));
}

}  // namespace brigade::test::foreach_test
