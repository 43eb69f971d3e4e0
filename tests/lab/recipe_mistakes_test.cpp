// The recipes amp-manual and branches: the verdicts for their mistakes, and what the right loops learn.
// (recipes_test.cpp runs the others.)
#include "program.h"
#include "recipe_ranks.h"

#include <brigade/lab/commands/train.h>

#include <doctest/doctest.h>

namespace brigade::test::recipe_mistakes_test {
namespace {

lab::FormOutcome train(const std::string& form, int epochs, const std::string& precision) {
  return test::run_form_of("amp-manual", form, epochs, precision);
}

}  // namespace

TEST_CASE("one update() per iteration, and schedules by the mean loss: three optimizers train in float16") {
  const lab::FormOutcome outcome = train("right", 20, "16-mixed");
  REQUIRE_MESSAGE(outcome.expected, outcome.error.text);
  CHECK(outcome.result.metrics.at("accuracy") >= 0.97);
  CHECK(outcome.result.metrics.at("loss scale") > 65536);
  CHECK(outcome.result.warnings.count("gradients_accumulate") == 0);
}

TEST_CASE("AMP-01, AMP-03, DIV-15, SCL-07: each mistake is an error before a weight moves wrongly, with its line") {
  struct Row {
    const char* form;
    std::vector<std::string> words;
  };
  const std::vector<Row> rows{
      {"plain-backward", {"Attempted unscale_ but _scale is None", "was not scaled"}},
      {"update-per-optimizer", {"was made at another scale", "call update() once per iteration"}},
      {"local-schedule", {"lr of group 0", "by a value that is the same there"}},
      {"no-zero-grad", {"holds parts of two scales", "zero_grad() before the next one"}}};
  for (const Row& row : rows) {
    const lab::FormOutcome outcome = train(row.form, 6, "16-mixed");
    CAPTURE(row.form);
    CAPTURE(outcome.error.text);
    CHECK(outcome.expected);
    CHECK(test::contains(outcome.error.text, "amp_manual.cpp:"));
    for (const std::string& word : row.words)
      CHECK_MESSAGE(test::contains(outcome.error.text, word), word);
  }
}

TEST_CASE("in 32-true, where there is no scaler, a plain backward is right, and a missing zero_grad() a warning") {
  const lab::FormOutcome plain = train("plain-backward", 1, "32-true");
  REQUIRE_MESSAGE(plain.error.ok, plain.error.text);
  CHECK(plain.result.loss == train("right", 1, "32-true").result.loss);
  const lab::FormOutcome piled_up = train("no-zero-grad", 1, "32-true");
  REQUIRE_MESSAGE(piled_up.error.ok, piled_up.error.text);
  CHECK(piled_up.result.warnings.count("gradients_accumulate") == 1);
}

namespace {

lab::FormOutcome train_branches(const std::string& form, int epochs, const std::string& precision) {
  return test::run_form_of("branches", form, epochs, precision);
}

}  // namespace

TEST_CASE("branches that come and go are trained where a form allows them") {
  for (const std::string form : {"dynamic", "static-graph-one-branch", "experts", "experts-idle-called"}) {
    const lab::FormOutcome outcome = train_branches(form, 12, "32-true");
    CAPTURE(form);
    REQUIRE_MESSAGE(outcome.expected, outcome.error.text);
    CHECK(outcome.result.metrics.at("accuracy") >= 0.95);
    // The cause of the error of the strict form is present here as well: experts stay idle.
    if (form.starts_with("experts")) CHECK(outcome.result.metrics.at("idle experts") > 0);
  }
  const lab::FormOutcome mixed = train_branches("experts", 3, "16-mixed");
  REQUIRE_MESSAGE(mixed.expected, mixed.error.text);
  CHECK(mixed.result.metrics.at("accuracy") >= 0.85);
}

TEST_CASE("the verdict on an idle expert names it, the ranks that had no image for it, and the lines") {
  const lab::FormOutcome outcome = train_branches("experts-strict", 1, "32-true");
  CAPTURE(outcome.error.text);
  CHECK(outcome.expected);
  CHECK(test::contains(outcome.error.text, "experts."));
  CHECK(test::contains(outcome.error.text, "was not called"));
}

}  // namespace brigade::test::recipe_mistakes_test
