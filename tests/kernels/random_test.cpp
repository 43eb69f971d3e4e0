// Random fills: ranges, number of random bits, positions in the generator's stream, and per-thread generators.
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace brigade::test::random_test {
namespace {

using Values = std::vector<double>;
Values values(const Tensor& x) { return x.to_vector<double>(); }
double mean_of(const Values& numbers) {
  double sum = 0;
  for (const double number : numbers)
    sum += number;
  return sum / static_cast<double>(numbers.size());
}

}  // namespace

TEST_CASE("rand is below 1 in every dtype, and has as many bits as the dtype holds") {
  struct Row {
    DType dtype;
    int bits;
  };
  for (const auto& [dtype, bits] : {Row{kFloat64, 53}, Row{kFloat32, 24}, Row{kFloat16, 11}, Row{kBFloat16, 8}}) {
    CAPTURE(std::string(name(dtype)));
    RandomGenerator generator(3);
    const Values u = values(rand({1 << 15}, dtype, &generator));
    CHECK(*std::max_element(u.begin(), u.end()) < 1);
    CHECK(*std::min_element(u.begin(), u.end()) >= 0);
    CHECK(mean_of(u) == doctest::Approx(0.5).epsilon(0.02));
    const double unit = std::ldexp(1.0, -bits);
    const auto is_multiple = [](double x, double of) { return std::fmod(x, of) == 0; };
    CHECK(std::all_of(u.begin(), u.end(), [&](double x) { return is_multiple(x, unit); }));
    const auto odd = std::count_if(u.begin(), u.end(), [&](double x) { return !is_multiple(x, 2 * unit); });
    CHECK(static_cast<double>(odd) == doctest::Approx(1 << 14).epsilon(0.05));  // the last bit is used
  }
}

TEST_CASE("uniform numbers of any range stay below its end, which rounding could reach") {
  for (const DType dtype : {kFloat32, kFloat16, kBFloat16}) {
    CAPTURE(std::string(name(dtype)));
    const Tensor x = empty({1 << 15}, dtype);
    RandomGenerator generator(4);
    kernels::fill_uniform(x, kernels::reserve_random(x, &generator), 1000, 1001);
    for (const double value : values(x)) {
      if (value < 1000 || value >= 1001) FAIL_CHECK(value);
    }
  }
}

TEST_CASE("a fill takes a word of the stream for each element, of float64 two, and never a word twice") {
  for (const DType dtype : {kFloat64, kFloat32, kFloat16}) {
    CAPTURE(std::string(name(dtype)));
    RandomGenerator generator(5);
    rand({8}, dtype, &generator);
    CHECK(generator.offset() == (dtype == kFloat64 ? 4 : 2));
    randn({9}, dtype, &generator);
    CHECK(generator.offset() == (dtype == kFloat64 ? 4 + 5 : 2 + 3));
  }
  RandomGenerator one(6), parts(6);
  const Values whole = values(rand({8}, kFloat64, &one));
  Values joined = values(rand({4}, kFloat64, &parts));
  const Values rest = values(rand({4}, kFloat64, &parts));
  joined.insert(joined.end(), rest.begin(), rest.end());
  CHECK(joined == whole);
  CHECK(std::set<double>(whole.begin(), whole.end()).size() == 8);
}

TEST_CASE("randn of float64 is normal, and its radii have 53 bits") {
  RandomGenerator generator(7);
  const Values z = values(randn({1 << 15}, kFloat64, &generator));
  Values squares;
  for (const double value : z)
    squares.push_back(value * value);
  CHECK(std::abs(mean_of(z)) < 0.02);
  CHECK(mean_of(squares) == doctest::Approx(1).epsilon(0.03));
  // The two numbers of a pair share a radius r, and exp(-r^2 / 2) is the underlying uniform number. With 32 bits it
  // would be a multiple of 2^-32.
  int fine = 0;
  for (size_t i = 0; i + 1 < z.size(); i += 2) {
    const double u = std::exp(-(squares[i] + squares[i + 1]) / 2) * 0x1p32;
    fine += std::abs(u - std::round(u)) > 1e-3 ? 1 : 0;
  }
  CHECK(fine > (1 << 13));
}

TEST_CASE("threads that nobody has seeded draw different numbers; seeded alike they draw the same") {
  const auto drawn = [](bool seeded) {
    Values result;
    std::thread([&] {
      if (seeded) manual_seed(11);
      result = values(rand({4}));
    }).join();
    return result;
  };
  const Values first = drawn(false), second = drawn(false), third = drawn(false);
  CHECK(first != second);
  CHECK(first != third);
  CHECK(second != third);
  CHECK(drawn(true) == drawn(true));
}

}  // namespace brigade::test::random_test
