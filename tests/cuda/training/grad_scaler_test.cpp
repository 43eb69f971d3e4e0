// A loss scaler with parameters on the device, or partly on the CPU: compared with one on the CPU only.
#include <brigade/amp/grad_scaler.h>
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/optim/optim.h>

#include <on_device.h>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace brigade::test::grad_scaler_test {
using test::kDevice;

namespace {

struct Run {
  std::vector<double> weights;
  double scale;
};

// Runs four steps, one of which is skipped because a gradient on `first` or on `second` is infinite.
Run run(Device first, Device second, bool is_fused, bool bad_in_second) {
  amp::GradScaler scaler({.init_scale = 1024, .growth_interval = 2, .fused_step = is_fused});
  const Tensor a = full({300}, 0.5, {kFloat32, first}).requires_grad_();
  const Tensor b = full({5}, -0.25, {kFloat32, second}).requires_grad_();
  optim::Adam optimizer({a, b}, {.lr = 0.125});
  for (int i = 0; i < 4; ++i) {
    optimizer.zero_grad();
    const double bad = i == 2 ? INFINITY : 1.0;
    const Tensor of_a = (a * a).sum() * (bad_in_second ? 1.0 : bad), of_b = b.sum() * (bad_in_second ? bad : 0.5);
    for (const Tensor& scaled : scaler.scale({of_a, of_b}))
      scaled.backward();
    CHECK(scaler.step(optimizer) == (i != 2));
    scaler.update();
  }
  std::vector<double> weights = a.to_vector<double>();
  for (const double each : b.to_vector<double>())
    weights.push_back(each);
  return {weights, scaler.get_scale()};
}

}  // namespace

TEST_CASE("a scaler on the device steps, skips and grows as on the CPU") {
  for (const bool bad_in_second : {false, true}) {
    const Run expected = run(kCPU, kCPU, false, bad_in_second);
    CHECK(expected.scale == 1024);
    for (const bool is_fused : {false, true}) {
      CAPTURE(is_fused);
      for (const auto& [first, second] :
           {std::pair<Device, Device>(kDevice, kDevice), {kDevice, kCPU}, {kCPU, kDevice}}) {
        const Run found = run(first, second, is_fused, bad_in_second);
        REQUIRE(found.weights.size() == expected.weights.size());
        for (size_t i = 0; i < found.weights.size(); ++i)
          CHECK(found.weights[i] == doctest::Approx(expected.weights[i]).epsilon(1e-6));
        CHECK(found.scale == expected.scale);
      }
    }
  }
}

TEST_CASE("unscale_ on the device leaves what it found there until it is asked") {
  amp::GradScaler scaler({.init_scale = 8, .device = kCUDA});
  CHECK(scaler.is_enabled());
  const Tensor weight = full({3}, 2, {kFloat32, kDevice}).requires_grad_();
  optim::SGD optimizer({weight}, {.lr = 1});
  scaler.scale(weight.sum()).backward();
  scaler.unscale_(optimizer);
  CHECK(weight.grad().to_vector<double>() == std::vector<double>{1, 1, 1});
  CHECK(scaler.found_inf(optimizer) == false);
}

}  // namespace brigade::test::grad_scaler_test
