// Benchmark statistics: quantiles, the noise of a median, ratios within the same rounds.
#include <brigade/lab/bench/spread.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace brigade::test::bench_spread_test {

using namespace brigade::lab::bench;
using doctest::Approx;

TEST_CASE("quantiles lie between neighbours in proportion, as NumPy computes them") {
  // numpy.quantile([1, 2, 4, 8], [0, .25, .5, .75, 1])
  const std::vector<double> values{1, 2, 4, 8};
  CHECK(quantile(values, 0) == 1);
  CHECK(quantile(values, 0.25) == 1.75);
  CHECK(quantile(values, 0.5) == 3);
  CHECK(quantile(values, 0.75) == 5);
  CHECK(quantile(values, 1) == 8);
  CHECK(quantile({7}, 0.25) == 7);
  CHECK(quantile({}, 0.5) == 0);
}

TEST_CASE("a spread is over all ranks; its noise is that of the worst rank") {
  const Samples samples{{8, 1, 4, 2}, {3, 3, 3, 3}};
  const Spread spread = spread_of(samples);
  CHECK(spread.n == 8);
  CHECK(spread.min == 1);
  CHECK(spread.max == 8);
  CHECK(spread.median == 3);
  CHECK(spread.low == 2.75);
  CHECK(spread.high == 3.25);
  // The first rank: quartiles 1.75 and 5, median 3, 4 samples.
  CHECK(spread.noise == Approx(1.57 * 3.25 / 2 / 3));
  CHECK(spread_of({}).n == 0);
  CHECK(spread_of({{}, {}}).median == 0);
}

TEST_CASE("noise halves with four times as many rounds, and is unknown for too few") {
  std::vector<double> few, many;
  for (int i = 0; i < 100; ++i)
    few.push_back(100 + i % 2);
  for (int i = 0; i < 400; ++i)
    many.push_back(100 + i % 2);
  CHECK(noise_of(many) == Approx(noise_of(few) / 2));
  CHECK(std::isinf(noise_of({1, 2})));
  CHECK(std::isinf(noise_of({0, 0, 0})));
  CHECK(noise_of({5, 5, 5}) == 0);
  CHECK(to_json(spread_of({{1, 2}})).at("noise").is_null());
  CHECK(to_json(spread_of({{5, 5, 5}})).at("noise") == 0);
}

TEST_CASE("ratios are of the same round of the same rank") {
  CHECK(ratios({{2, 9}, {8}}, {{1, 3}, {4}}) == Samples{{2, 3}, {2}});
  CHECK(ratios({{2, 9, 5}}, {{1, 3}}) == Samples{{2, 3}});
}

}  // namespace brigade::test::bench_spread_test
