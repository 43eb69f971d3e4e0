// The recipe `gan`, compared with PyTorch: 50 steps in float64 on two ranks (tests/reference/generate_recipes.py).
#include <brigade/core/factory.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/lab/recipes/gan/step.h>

#include <doctest/doctest.h>
#include <near.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <functional>
#include <numeric>

namespace brigade::test::gan_reference_test {

// Tensor `number` of a run, bit-identical to the one in the script.
Tensor fill(int64_t number, const Shape& shape, double scale) {
  const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back((static_cast<double>((i * 7919 + number * 104729 + 1) % 2003) / 1001.5 - 1) * scale);
  return tensor(values, shape);
}

void fill_parameters(nn::Module& module, int64_t first) {
  const NoGradGuard no_grad;
  for (const Tensor& parameter : module.parameters()) {
    const double fan_in = static_cast<double>(parameter.numel()) / static_cast<double>(parameter.size(0));
    parameter.copy_(fill(first++, parameter.sizes(), parameter.dim() > 1 ? 1 / std::sqrt(fan_in) : 0.1));
  }
}

TEST_CASE("the losses of the recipe gan in float64 are PyTorch's over 50 steps, whatever the form") {
  std::ifstream in(BRIGADE_SOURCE_DIR "/tests/reference/fixtures/recipes/gan.json");
  const nlohmann::json fixture = nlohmann::json::parse(in);
  const auto expected_d = fixture.at("losses").at("discriminator").get<std::vector<double>>();
  const auto expected_g = fixture.at("losses").at("generator").get<std::vector<double>>();
  const int64_t batch = fixture.at("batch");
  REQUIRE(expected_d.size() == 50);
  const lab::Digits digits = lab::load_digits(lab::digits_path(), kFloat64);
  double worst_of_all = 0;
  for (const std::string form : {"expect", "toggle", "find-unused", "two-wrappers", "no-detach"}) {
    CAPTURE(form);
    std::vector<double> found_d, found_g;
    dist::run_threads(fixture.at("ranks"), [&](const dist::ProcessGroupPtr& group) {
      const auto mine = [&](const Tensor& all, int64_t first) {
        return all.slice(0, first + group->rank(), first + batch, group->size()).contiguous();
      };
      dist::Fabric fabric(lab::GanTraining::options_for(form, {.accelerator = "cpu", .precision = "64-true"}), group);
      lab::DigitsGan net;
      net->to(kFloat64);
      fill_parameters(*net->generator, 0);
      fill_parameters(*net->discriminator, 100);
      fill_parameters(*net->perception, 200);
      lab::GanTraining training(net, fabric, form, fixture.at("lr"));
      for (int64_t step = 0; step < static_cast<int64_t>(expected_d.size()); ++step) {
        const Tensor noise = fill(1000 + step, {batch, lab::kGanNoise}, 1);
        const lab::GanTraining::Losses losses = training.step(
            {mine(digits.train.images, step * batch), mine(digits.train.labels, step * batch), mine(noise, 0)});
        const Tensor mean = tensor<double>({losses.discriminator.detach().item(), losses.generator.detach().item()});
        group->all_reduce(mean, {.op = dist::ReduceOp::Avg, .description = "losses"})->wait();
        if (group->rank() != 0) continue;
        found_d.push_back(mean.to_vector<double>()[0]);
        found_g.push_back(mean.to_vector<double>()[1]);
      }
    });
    double worst = 0;
    for (size_t i = 0; i < expected_d.size(); ++i) {
      worst = test::worse(worst, std::abs(found_d[i] / expected_d[i] - 1));
      worst = test::worse(worst, std::abs(found_g[i] / expected_g[i] - 1));
    }
    CHECK(worst < 1e-9);
    worst_of_all = test::worse(worst_of_all, worst);
  }
  MESSAGE("losses of the recipe gan over 50 steps: largest relative difference to PyTorch " << worst_of_all);
}

}  // namespace brigade::test::gan_reference_test
