// A capturable scaler (GradScalerOptions::capturable) keeps its scale on the losses' device: it gives the weights and
// scales of the default scaler without a device synchronization, and refuses unsupported uses. Graph capture:
// tests/cuda/training.
#include <brigade/kernels/factory.h>

#include <amp/training.h>

#include <cmath>
#include <vector>

namespace brigade::test::capturable_scaler_test {

using test::error_of;
using test::OneWeight;
using test::says_all;

struct Step {
  std::vector<double> weights;
  double scale;
  int64_t tracker;
  std::optional<bool> found;
  bool operator==(const Step&) const = default;
};

// Ten steps of two optimizers. Some find an infinity or NaN, the very first one too, before a momentum buffer exists.
std::vector<Step> run(const amp::GradScalerOptions& options, double momentum, bool unscales) {
  amp::GradScaler scaler(options);
  const Tensor a = full({3}, 0.7).requires_grad_(), b = full({2, 2}, -0.3).requires_grad_();
  optim::SGD first({a}, {.lr = 0.1, .momentum = momentum, .weight_decay = 0.01});
  optim::SGD second({b}, {.lr = 0.2, .momentum = momentum, .maximize = true});
  std::vector<Step> steps;
  for (int i = 0; i < 10; ++i) {
    first.zero_grad();
    second.zero_grad();
    const double of_a = i == 0 || i == 5 ? INFINITY : 0.1 * (i + 1), of_b = i == 6 ? NAN : 0.3;
    scaler.scale((a * a * of_a).sum() + (b * of_b).sum()).backward();
    if (unscales) scaler.unscale_(first);
    scaler.step(first);
    scaler.step(second);
    Step step{a.to_vector<double>(), 0, 0, scaler.found_inf(first)};
    for (const double each : b.to_vector<double>())
      step.weights.push_back(each);
    scaler.update();
    step.scale = scaler.get_scale();
    step.tracker = scaler.growth_tracker();
    steps.push_back(step);
  }
  return steps;
}

TEST_CASE("a capturable scaler leaves the weights, scales and counts of the usual one, to the bit") {
  for (const double momentum : {0.0, 0.9}) {
    for (const bool is_fused : {false, true}) {
      for (const bool unscales : {false, true}) {
        CAPTURE(momentum);
        CAPTURE(is_fused);
        CAPTURE(unscales);
        amp::GradScalerOptions options{.init_scale = 1024, .growth_interval = 2, .fused_step = is_fused};
        const std::vector<Step> usual = run(options, momentum, unscales);
        options.capturable = true;
        const std::vector<Step> found = run(options, momentum, unscales);
        for (size_t i = 0; i < usual.size(); ++i) {
          CAPTURE(i);
          CHECK(found[i].weights == usual[i].weights);
          CHECK(found[i] == usual[i]);
        }
        CHECK(usual[0].found == true);
        CHECK(usual[0].scale == 512);
      }
    }
  }
}

TEST_CASE("a capturable scaler is saved and loaded, and takes scales that are set") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 8, .growth_interval = 3, .capturable = true});
  CHECK(scaler.get_scale() == 8);
  CHECK(scaler.growth_tracker() == 0);
  const auto step = [&] {
    model.optimizer.zero_grad();
    scaler.scale(model.loss()).backward();
    CHECK(scaler.step(model.optimizer));
  };
  step();
  scaler.update();
  const optim::OptimizerState saved = scaler.state_dict();
  step();
  scaler.update(64);
  CHECK(scaler.get_scale() == 64);
  CHECK(scaler.growth_tracker() == 1);
  step();
  CHECK(model.gradient() == 1);  // unscaled by 64
  scaler.update();
  CHECK(scaler.growth_tracker() == 2);
  scaler.load_state_dict(saved);
  CHECK(scaler.get_scale() == 8);
  CHECK(scaler.growth_tracker() == 1);
  step();
  CHECK(model.gradient() == 1);
  scaler.update();
  step();
  scaler.update();
  CHECK(scaler.get_scale() == 16);

  OneWeight other;
  amp::GradScaler resumed({.init_scale = 2, .growth_interval = 3, .capturable = true});
  resumed.load_state_dict(saved);
  other.optimizer.zero_grad();
  resumed.scale(other.loss()).backward();
  CHECK(other.gradient() == 8);
  CHECK(resumed.growth_tracker() == 1);
}

TEST_CASE("a capturable scaler refuses optimizers that count their steps, and says what to take") {
  const Tensor weight = ones({2}).requires_grad_();
  amp::GradScaler scaler({.init_scale = 8, .capturable = true});
  optim::Adam adam({weight}, {.lr = 1});
  optim::SGD damped({weight}, {.lr = 1, .momentum = 0.9, .dampening = 0.1});
  optim::SGD hooked({weight}, {.lr = 1});
  hooked.register_step_post_hook([](optim::Optimizer&, SourceLocation) {});
  scaler.scale(weight.sum()).backward();
  CHECK(says_all(error_of([&] { scaler.step(adam); }),
                 {"expected an optimizer whose step the device can leave out by itself",
                  "Adam and AdamW without hooks, "
                  "with .capturable = true",
                  "got Adam", "a scaler without .capturable"}));
  CHECK(says_all(error_of([&] { scaler.step(damped); }), {"without dampening", "got SGD"}));
  CHECK(says_all(error_of([&] { scaler.step(hooked); }), {"SGD without hooks", "got SGD"}));
  CHECK(weight.to_vector<double>() == std::vector<double>{1, 1});
  CHECK(weight.grad().to_vector<double>() == std::vector<double>{8, 8});
  CHECK(says_all(error_of([&] { scaler.update(); }), {"No inf checks were recorded prior to update."}));
}

}  // namespace brigade::test::capturable_scaler_test
