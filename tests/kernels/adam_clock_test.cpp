// Adam with a step count in memory gives the same result as with a step count on the host.
#include <brigade/core/factory.h>
#include <brigade/kernels/optimizer.h>

#include <kernels/steps.h>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace brigade::test::adam_clock_test {
using test::row;

namespace {
using List = std::vector<Tensor>;
}

TEST_CASE("a clock holds the corrections of the step that it counts, and stands where something was found") {
  const Tensor clock = kernels::make_adam_clock(0, kCPU);
  double steps = 0;
  for (const double found : {0.0, 1.0, 0.0, -2.0, 0.0}) {
    kernels::advance_adam_clock(clock, full({}, found), 0.9, 0.99);
    if (found == 0) ++steps;
    CHECK(clock.to_vector<double>() ==
          std::vector<double>{steps, 1 - std::pow(0.9, steps), std::sqrt(1 - std::pow(0.99, steps))});
  }
  kernels::advance_adam_clock(clock, Tensor(), 0.9, 0.99);
  CHECK(clock.to_vector<double>()[0] == 4);
}

TEST_CASE("Adam reads its count of steps, a factor and what was found from memory, and moves as by numbers") {
  for (const bool amsgrad : {false, true}) {
    for (const DType dtype : test::kEveryFloating) {
      CAPTURE(amsgrad);
      CAPTURE(std::string(name(dtype)));
      const auto list = [&](double first) { return List{row({first, 0.3, 2}, dtype), row({first}, dtype)}; };
      const List plain[] = {list(1), list(0), list(0), amsgrad ? list(0) : List()};
      const List counted[] = {list(1), list(0), list(0), amsgrad ? list(0) : List()};
      kernels::AdamParams here{0.1, 0.9, 0.99, 1e-8, 0.1, 5, !amsgrad, false, 0.25};
      kernels::AdamParams there = here;
      there.lr = 7;  // must not be read
      there.device_lr = full({}, 0.1, kFloat64);
      there.grad_factor = 0.5;
      there.device_factor = full({}, 0.5);
      there.clock = kernels::make_adam_clock(4, kCPU);
      for (const double found : {0.0, 1.0, 0.0, 0.0}) {
        there.found_inf = full({}, found);
        there.step = -7;  // must not be read
        kernels::advance_adam_clock(there.clock, there.found_inf, there.beta1, there.beta2);
        kernels::foreach_adam_step(counted[0], list(0.25), counted[1], counted[2], counted[3], there);
        if (found == 0) {
          kernels::foreach_adam_step(plain[0], list(0.25), plain[1], plain[2], plain[3], here);
          ++here.step;
        }
        CHECK(there.clock.to_vector<double>()[0] == static_cast<double>(here.step - 1));
        for (size_t l = 0; l < 4; ++l) {
          for (size_t i = 0; i < plain[l].size(); ++i)
            CHECK(counted[l][i].to_vector<double>() == plain[l][i].to_vector<double>());
        }
      }
    }
  }
}

TEST_CASE("a clock that is none of Adam's is named") {
  const List list{row({1, 2})};
  kernels::AdamParams adam{0.1, 0.9, 0.99, 1e-8, 0.1, 3, true, false};
  adam.clock = zeros({3});
  CHECK_THROWS_WITH_AS(kernels::foreach_adam_step(list, list, list, list, {}, adam),
                       doctest::Contains("foreach_adam_step: expected a clock of float64, got"), DTypeError);
  CHECK_THROWS_WITH_AS(kernels::advance_adam_clock(zeros({2}, kFloat64), Tensor(), 0.9, 0.99),
                       doctest::Contains("advance_adam_clock: expected a contiguous clock of shape [3], got"),
                       ShapeError);
  adam.clock = kernels::make_adam_clock(1, kCPU);
  adam.found_inf = zeros({2});
  CHECK_THROWS_WITH_AS(kernels::foreach_adam_step(list, list, list, list, {}, adam), doctest::Contains("found_inf"),
                       ShapeError);
  adam.found_inf = Tensor();
  adam.device_lr = zeros({});
  CHECK_THROWS_WITH_AS(kernels::foreach_adam_step(list, list, list, list, {}, adam), doctest::Contains("device_lr"),
                       DTypeError);
}

}  // namespace brigade::test::adam_clock_test
