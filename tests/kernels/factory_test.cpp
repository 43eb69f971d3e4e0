// Random fills, compared with the documented stream.
#include <brigade/core/view.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/reduce.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace brigade::test::factory_test {
using namespace brigade::kernels;
using test::at;

TEST_CASE("random fills follow the documented stream and have the right moments") {
  RandomGenerator generator(11);
  const Tensor u = rand({100'001}, kFloat32, &generator);
  const PhiloxState state{11, 0};
  for (const int64_t i : {int64_t{0}, int64_t{5}, int64_t{100'000}})
    CHECK(at(u, i) == uniform_from_word(state.word(static_cast<uint64_t>(i))));
  CHECK(at(mean(u, {}), 0) == doctest::Approx(0.5).epsilon(0.01));
  RandomGenerator again(11);
  CHECK(rand({100'001}, kFloat32, &again).to_vector<float>() == u.to_vector<float>());
  const Tensor z = randn({100'000}, kFloat64, &generator);
  CHECK(std::abs(at(mean(z, {}), 0)) < 0.02);
  CHECK(at(mean(binary(z, z, BinaryOp::Mul), {}), 0) == doctest::Approx(1).epsilon(0.02));
  const auto order = randperm(100, &generator).to_vector<int64_t>();
  std::vector<int> seen(100, 0);
  for (const int64_t i : order)
    ++seen[static_cast<size_t>(i)];
  CHECK(seen == std::vector<int>(100, 1));
  for (const int64_t i : randint(-2, 3, {1000}, kInt64, &generator).to_vector<int64_t>())
    CHECK((i >= -2 && i < 3));
  CHECK(arange(1, 2, 0.25, kFloat32).to_vector<float>() == std::vector<float>{1, 1.25, 1.5, 1.75});
  CHECK(arange(4).dtype() == kInt64);
  CHECK(arange(4).to_vector<int64_t>() == std::vector<int64_t>{0, 1, 2, 3});
  CHECK(arange(3, kFloat32).to_vector<float>() == std::vector<float>{0, 1, 2});
  CHECK(arange(0, 1, 0.25).dtype() == kFloat32);
  CHECK(arange(0, 1, 0.25).to_vector<float>() == std::vector<float>{0, 0.25, 0.5, 0.75});
  CHECK(arange(3.0).dtype() == kFloat32);
  CHECK(arange(3.0, kInt32).dtype() == kInt32);
  CHECK(arange(7, 0, -3).to_vector<int64_t>() == std::vector<int64_t>{7, 4, 1});
  // Exact even where double has steps of 1024, and without overflowing 64 bits.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  CHECK(arange(kMost - 3, kMost).to_vector<int64_t>() == std::vector<int64_t>{kMost - 3, kMost - 2, kMost - 1});
  CHECK(arange(-kMost, kMost, kMost).to_vector<int64_t>() == std::vector<int64_t>{-kMost, 0});
  CHECK(full({2}, 3).dtype() == kInt64);
  CHECK(full({2}, 3.0).dtype() == kFloat32);
  CHECK(full({2}, true).dtype() == kBool);
  CHECK(full({2}, 3, kFloat16).dtype() == kFloat16);
  CHECK(full({1}, kMost - 1).item<int64_t>() == kMost - 1);
  CHECK(full({2}, 3, device(Device())).dtype() == kInt64);
  CHECK(zeros({2}, device(Device())).dtype() == kFloat32);
  CHECK(tensor({1, 2}, device(Device())).dtype() == kInt64);
  CHECK_THROWS_AS(arange(-1), ValueError);
  CHECK_THROWS_AS(arange(0, 1, -1), ValueError);
  CHECK(linspace(0, 1, 5).to_vector<float>() == std::vector<float>{0, 0.25, 0.5, 0.75, 1});
  CHECK(linspace(3, 10, 1).to_vector<float>() == std::vector<float>{3});
  CHECK(linspace(0, 10, 4, kInt64).to_vector<int64_t>() == std::vector<int64_t>{0, 3, 6, 10});
  CHECK(linspace(1, 0.1, 10, kFloat64).to_vector<double>().back() == 0.1);
  CHECK(linspace(1, 0, 0).sizes() == Shape{0});
  CHECK_THROWS_AS(linspace(0, 1, -1), ValueError);
  CHECK(eye(2, 3).to_vector<float>() == std::vector<float>{1, 0, 0, 0, 1, 0});
  CHECK(eye(2, kInt64).to_vector<int64_t>() == std::vector<int64_t>{1, 0, 0, 1});
  CHECK_THROWS_AS(eye(-1), ValueError);
}

TEST_CASE("fills of any range, and of any mean and spread, are those of the standard ones from the same state") {
  for (const DType dtype : test::kEveryFloating) {
    CAPTURE(name(dtype));
    const double bound = 8 * test::tolerance(dtype);
    for (const int64_t n : {0, 1, 7, 1025}) {
      CAPTURE(n);
      RandomGenerator generator(12);
      const Tensor standard = empty({n}, dtype), moved = empty({n}, dtype);
      const PhiloxState state = reserve_random(standard, &generator);
      fill_normal(standard, state, 0, 1);
      fill_normal(moved, state, 3, 0.5);
      for (int64_t i = 0; i < n; ++i)
        CHECK(test::is_close(at(moved, i), 3 + at(standard, i) / 2, bound));
      fill_uniform(standard, state, 0, 1);
      fill_uniform(moved, state, -2, 6);
      for (int64_t i = 0; i < n; ++i)
        CHECK(test::is_close(at(moved, i), 8 * at(standard, i) - 2, bound));
    }
    // A view is filled in the order of its elements.
    const PhiloxState state{13, 0};
    const Tensor dense = empty({7, 5}, dtype), seen = view::transpose(empty({5, 7}, dtype), 0, 1);
    fill_normal(dense, state, 1, 2);
    fill_normal(seen, state, 1, 2);
    CHECK(seen.to_vector<double>() == dense.to_vector<double>());
  }
}

}  // namespace brigade::test::factory_test
