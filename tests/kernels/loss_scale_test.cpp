// Updates of a loss scale in device memory: growth, backoff, and the growth interval.
#include <brigade/kernels/factory.h>
#include <brigade/kernels/optimizer.h>

#include <core/error_of.h>

#include <doctest/doctest.h>

#include <limits>

namespace brigade::test::loss_scale_test {
using namespace brigade::kernels;

TEST_CASE("a loss scale falls where something was found, grows after an interval, and stays finite") {
  const Tensor scale = full({}, 8.0), inverse = full({}, 1.0 / 8), tracker = zeros({}, kInt64);
  const LossScaleRule rule{.growth_factor = 2, .backoff_factor = 0.25, .growth_interval = 2};
  struct Turn {
    double found, scale;
    int64_t tracker;
  };
  for (const Turn& turn :
       {Turn{0, 8, 1}, Turn{0, 16, 0}, Turn{0, 16, 1}, Turn{1, 4, 0}, Turn{2, 1, 0}, Turn{0, 1, 1}}) {
    update_loss_scale(scale, inverse, tracker, full({}, turn.found), rule);
    CHECK(scale.item() == turn.scale);
    CHECK(inverse.item() == 1 / turn.scale);
    CHECK(tracker.item() == turn.tracker);
  }
  // The scale does not grow past the float32 range; the count restarts.
  const double largest = std::numeric_limits<float>::max();
  fill(scale, largest);
  update_loss_scale(scale, inverse, tracker, zeros({}), rule);
  CHECK(scale.item() == largest);
  CHECK(tracker.item() == 0);
}

TEST_CASE("an update of a loss scale names the argument that does not fit") {
  const Tensor one = ones({}), tracker = zeros({}, kInt64);
  const LossScaleRule rule{2, 0.5, 2};
  CHECK_THROWS_WITH_AS(update_loss_scale(one, one, one, one, rule),
                       doctest::Contains("growth_tracker must be int64, got float32"), DTypeError);
  CHECK_THROWS_WITH_AS(update_loss_scale(one, one, tracker, ones({2}), rule),
                       doctest::Contains("found_inf must have one element, got float32 [2]"), ShapeError);
}

TEST_CASE("SGD takes a further factor from memory, and leaves all as it is where something was found") {
  for (const DType dtype : {kFloat32, kFloat64, kBFloat16, kFloat16}) {
    for (const bool has_momentum : {false, true}) {
      const auto list = [&](double value) {
        return std::vector<Tensor>{full({5}, value, dtype), full({2}, value, dtype)};
      };
      const auto buffers = [&] { return has_momentum ? list(0.5) : std::vector<Tensor>(); };
      const double momentum = has_momentum ? 0.9 : 0;
      SgdParams options{0.25, momentum, 0, 0.01, false, false, true, 0.5};
      const std::vector<Tensor> expected = list(1), expected_buffers = buffers();
      options.grad_factor = 0.125;
      foreach_sgd_step(expected, list(4), expected_buffers, options);
      options.grad_factor = 0.5;
      options.device_factor = full({}, 0.25);
      for (const bool found : {true, false}) {
        const std::vector<Tensor> moved = list(1), moved_buffers = buffers();
        options.found_inf = full({}, found ? 1.0 : 0.0);
        foreach_sgd_step(moved, list(4), moved_buffers, options);
        for (size_t i = 0; i < 2; ++i) {
          CHECK(moved[i].to_vector<double>() == (found ? list(1) : expected)[i].to_vector<double>());
          if (has_momentum)
            CHECK(moved_buffers[i].to_vector<double>() ==
                  (found ? buffers() : expected_buffers)[i].to_vector<double>());
        }
      }
      options.found_inf = zeros({3});
      CHECK_THROWS_WITH_AS(foreach_sgd_step(list(1), list(1), buffers(), options),
                           doctest::Contains("found_inf must have one element, got float32 [3]"), ShapeError);
    }
  }
}

}  // namespace brigade::test::loss_scale_test
