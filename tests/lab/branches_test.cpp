// The recipe branches: what is learned when branches may be skipped. (recipes_test.cpp runs every form on every
// backend.)
#include <brigade/lab/commands/train.h>

#include "program.h"
#include "recipe_ranks.h"

#include <doctest/doctest.h>

namespace brigade::test::branches_test {

namespace {

lab::FormOutcome train(const std::string& form, int epochs, const std::string& precision) {
  return test::run_form_of("branches", form, epochs, precision);
}

}  // namespace

TEST_CASE("branches that come and go are trained where a form allows them") {
  for (const std::string form : {"dynamic", "static-graph-one-branch", "experts", "experts-idle-called"}) {
    const lab::FormOutcome outcome = train(form, 12, "32-true");
    CAPTURE(form);
    REQUIRE_MESSAGE(outcome.expected, outcome.error.text);
    CHECK(outcome.result.metrics.at("accuracy") >= 0.95);
    // The cause of the error of the strict form is present here as well: experts stay idle.
    if (form.starts_with("experts")) CHECK(outcome.result.metrics.at("idle experts") > 0);
  }
  const lab::FormOutcome mixed = train("experts", 3, "16-mixed");
  REQUIRE_MESSAGE(mixed.expected, mixed.error.text);
  CHECK(mixed.result.metrics.at("accuracy") >= 0.85);
}

TEST_CASE("the verdict on an idle expert names it, the ranks that had no image for it, and the lines") {
  const lab::FormOutcome outcome = train("experts-strict", 1, "32-true");
  CAPTURE(outcome.error.text);
  CHECK(outcome.expected);
  CHECK(test::contains(outcome.error.text, "experts."));
  CHECK(test::contains(outcome.error.text, "was never called"));
}

}  // namespace brigade::test::branches_test
