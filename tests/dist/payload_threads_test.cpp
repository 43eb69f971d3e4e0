// The payload that travels with the gradients: flags, words, and the numbers that describe a gradient.
#include "on_ranks.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/buckets/payload.h>
#include <brigade/kernels/bucket.h>
#include <brigade/kernels/factory.h>

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace brigade::test::payload_threads_test {

TEST_CASE("flags and words survive the average in every dtype, on up to 16 ranks") {
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    test::on("threads", {1, 2, 3, 7, 16}, [dtype](const std::string& backend, int ranks) {
      test::expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) -> std::string {
        const int rank = group->rank();
        dist::BucketLayout layout;
        layout.dtype = dtype;
        layout.gradient_numel = 5;
        for (int i = 0; i < ranks; ++i)
          layout.parameters.push_back(static_cast<uint32_t>(i));
        using Kind = dist::WordKind;
        dist::Payload payload(*group, layout, std::vector{Kind::Number, Kind::Measure});
        // Parameter i is used by the ranks up to i.
        for (int i = 0; i < ranks; ++i)
          payload.set_flag(static_cast<size_t>(i), rank <= i);
        payload.set(dist::Word::Present, rank % 2 == 0 ? 1 : 0);
        payload.set_number(dist::Word::Round, 4099);
        payload.set_word(0, rank == 0 ? 4099 : 4100);
        payload.set_word(1, rank == ranks - 1 ? 6 : 4);
        group->all_reduce(payload.whole(), {.op = dist::ReduceOp::Avg})->wait();
        for (int i = 0; i < ranks; ++i) {
          const int count = payload.flag_count(static_cast<size_t>(i));
          if (count != i + 1) return fmt::format("flag {} counts {}", i, count);
        }
        if (payload.count(dist::Word::Present) != (ranks + 1) / 2) return "present";
        if (payload.count(dist::Word::Failed) != 0) return "failed";
        if (!payload.all_equal(dist::Word::Round)) return "the same round on all";
        if (payload.read_word(0).all_equal != (ranks == 1)) return "another number on rank 0";
        const double spread = 2 * std::sqrt(static_cast<double>(ranks - 1)) / ranks;
        const double found = std::sqrt(payload.read_word(1).variance);
        return std::abs(found - spread) < (is_half(dtype) ? 0.4 : 1e-3) ? "" : fmt::format("spread {}", found);
      });
    });
  }
}

TEST_CASE("the probe is linear, sees every element, and tells a sum from a mean") {
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    for (const int64_t size : {1, 15, 16, 17, 511, 512, 513, 2000}) {
      CAPTURE(size);
      RandomGenerator generator(static_cast<uint64_t>(size));
      const Tensor a = randn({size}, kFloat64, &generator).to(dtype);
      const Tensor b = randn({size}, kFloat64, &generator).to(dtype);
      // Sums of half types would round, so float64 holds them.
      const Tensor sum = a.to(kFloat64) + b.to(kFloat64);
      CHECK(kernels::probe(sum) == doctest::Approx(kernels::probe(a) + kernels::probe(b)).epsilon(1e-9));
      CHECK(kernels::probe(a.to(kFloat64)) == doctest::Approx(kernels::probe(a)).epsilon(1e-12));
      double plain = 0;
      for (const double v : a.to_vector<double>())
        plain += v * v;
      CHECK(kernels::sum_of_squares(a) == doctest::Approx(plain).epsilon(1e-5));
    }
  }
  // Signs of both kinds, no element with a small weight.
  int positive = 0;
  for (int64_t i = 0; i < 1500; ++i) {
    Tensor one = zeros({1500}, kFloat64);
    one.data_ptr<double>()[i] = 3;
    const double found = kernels::probe(one);
    CHECK(std::abs(found) >= 3 * 0.25);
    CHECK(std::abs(found) <= 3 * 2.25);
    positive += found > 0 ? 1 : 0;
  }
  CHECK(std::abs(positive - 750) < 60);
}

TEST_CASE("sizes of large gradients do not overflow before they do; what is not finite is found") {
  CHECK(kernels::sum_of_squares(full({8192}, 1e18, kFloat32)) == doctest::Approx(8192e36));
  CHECK(kernels::sum_of_squares(full({8192}, 1e25, kFloat32)) == doctest::Approx(8192e50));
  CHECK(kernels::sum_of_squares(full({8192}, 1e300, kFloat64)) == std::numeric_limits<double>::max());
  CHECK(kernels::sum_of_squares(full({100000}, 60000, kFloat16)) == doctest::Approx(3.6e14));
  for (const int64_t at : {0, 40, 99}) {
    Tensor x = ones({100}, kFloat32);
    CHECK_FALSE(kernels::has_non_finite(x));
    x.data_ptr<float>()[at] = std::numeric_limits<float>::quiet_NaN();
    CHECK(kernels::has_non_finite(x));
    CHECK(std::isnan(kernels::probe(x)));
    CHECK(std::isnan(kernels::sum_of_squares(x)));
  }
}

}  // namespace brigade::test::payload_threads_test
