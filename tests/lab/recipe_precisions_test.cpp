// Recipes with several losses or optimizers in mixed precision: their loss curves stay close to float32, and one loss
// scaler serves all optimizers of an iteration.
#include <brigade/lab/commands/train.h>

#include "recipe_ranks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace brigade::test::recipe_precisions_test {

using Losses = std::vector<double>;

lab::TrainOptions options_of(const lab::Recipe& recipe, const std::string& form, int64_t steps,
                             const std::string& precision) {
  lab::TrainOptions options = recipe.defaults;
  options.form = form;
  options.epochs = 1000;
  options.steps = steps;
  options.precision = precision;
  options.progress = false;
  return options;
}

// Trains on two threads, as `brigade train --form` does.
lab::FormOutcome train(const std::string& name, const std::string& form, int64_t steps, const std::string& precision) {
  const lab::Recipe& recipe = lab::find_recipe(name);
  return lab::run_form(recipe, lab::find_form(recipe, form), {.backend = "threads"},
                       options_of(recipe, form, steps, precision));
}

// The losses of 30 steps on two ranks of a backend.
Losses curve(const std::string& name, const std::string& backend, const std::string& precision) {
  const lab::Recipe& recipe = lab::find_recipe(name);
  const lab::TrainOptions options = options_of(recipe, recipe.forms.front().name, 30, precision);
  const test::Trained trained =
      test::train_on(backend, [&](const dist::ProcessGroupPtr& group) { return recipe.train(group, options); });
  REQUIRE_MESSAGE(trained.raised.empty(), trained.raised.front().text);
  CHECK(trained.parameters_equal);
  CHECK(trained.gradients_equal);
  return trained.loss;
}

// The largest difference between two curves.
double apart(const Losses& a, const Losses& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

TEST_CASE("gan and deep-supervision in mixed precision stay near the losses of float32, on every backend") {
  struct Row {
    const char *recipe, *precision;
    double bound;  // on loss differences; losses are in 0.4 .. 1.6; about three times the measured value
  };
  const std::vector<Row> rows{{"gan", "bf16-mixed", 0.025},
                              {"gan", "16-mixed", 0.006},
                              {"deep-supervision", "bf16-mixed", 0.06},
                              {"deep-supervision", "16-mixed", 0.005}};
  for (const Row& row : rows) {
    const Losses exact = curve(row.recipe, "threads", "32-true");
    CHECK(exact.size() == 30);
    for (const std::string& backend : test::recipe_backends()) {
      const Losses mixed = curve(row.recipe, backend, row.precision);
      const double difference = apart(mixed, exact);
      CAPTURE(std::string(row.recipe) + " in " + row.precision + " on " + backend);
      CHECK(difference < row.bound);
      CHECK(difference > 1e-6);  // it really ran in a half type
    }
  }
}

TEST_CASE("every form of gan and deep-supervision ends in 16-mixed as it does in 32-true") {
  for (const char* name : {"gan", "deep-supervision"}) {
    for (const lab::Form& form : lab::find_recipe(name).forms) {
      CAPTURE(name);
      CAPTURE(form.name);
      const lab::FormOutcome outcome = train(name, form.name, 4, "16-mixed");
      CHECK_MESSAGE(outcome.expected, outcome.error.text);
    }
  }
}

TEST_CASE("two optimizers of gan share one scaler, which is updated once per iteration") {
  // The scale doubles after 2000 updates without an infinity: if each optimizer updated it, it would have doubled here.
  const lab::FormOutcome outcome = train("gan", "toggle", 1100, "16-mixed");
  REQUIRE_MESSAGE(outcome.expected, outcome.error.text);
  CHECK(outcome.result.loss.size() == 1100);
  CHECK(outcome.result.metrics.at("skipped steps") == 0);
  CHECK(outcome.result.metrics.at("loss scale") == 65536);
}

TEST_CASE("gan and deep-supervision learn in 16-mixed and bf16-mixed what they learn in 32-true") {
  for (const char* precision : {"16-mixed", "bf16-mixed"}) {
    CAPTURE(precision);
    const lab::FormOutcome gan = train("gan", "expect", 330, precision);
    REQUIRE_MESSAGE(gan.expected, gan.error.text);
    CHECK(gan.result.metrics.at("named with confidence") >= 0.8);
    CHECK(gan.result.metrics.at("discriminator accuracy") >= 0.4);
    CHECK(gan.result.metrics.at("discriminator accuracy") <= 0.65);
    const lab::FormOutcome deep = train("deep-supervision", "all-scales", 440, precision);
    REQUIRE_MESSAGE(deep.expected, deep.error.text);
    CHECK(deep.result.metrics.at("iou") >= 0.8);
  }
}

}  // namespace brigade::test::recipe_precisions_test
