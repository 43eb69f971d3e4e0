// The form in which ranks exchange a verdict, and the wording of the names and ranks in it.
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/diagnosis/wire.h>
#include <brigade/dist/errors/majority.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace brigade::test::verdict_text_test {
const dist::Moment kMoment{.iteration = 7, .where = SourceLocation::current(), .ranks = 4};

TEST_CASE("a verdict goes over the wire unharmed, bytes that are no text included") {
  dist::Verdict verdict = dist::verdict_at(kMoment, "slow_rank", dist::Severity::Warning, dist::CauseKind::Slow);
  verdict.message = "a line\n\"quoted\" \x1f";
  verdict.parameters.push_back({"w", 8, {0}, {1, 2}});
  const auto back =
      dist::from_text(dist::to_text(std::vector<dist::Verdict>{verdict})).get<std::vector<dist::Verdict>>();
  REQUIRE(back.size() == 1);
  CHECK(back[0].message == verdict.message);
  CHECK(back[0].severity == verdict.severity);
  CHECK(back[0].cause.same_as(verdict.cause));
  CHECK(back[0].cause.place == Place(kMoment.where));
  CHECK(back[0].parameters[0].missing_ranks == std::vector<int>{1, 2});
  CHECK(back[0].iteration == 7);
  CHECK_NOTHROW(dist::to_text("\xff\xfe"));
  CHECK_THROWS_AS(dist::from_text("{\"cut\": "), DistError);
}

TEST_CASE("numbers that are not finite come through a message between ranks") {
  dist::StepOnRank step;
  const double infinity = std::numeric_limits<double>::infinity();
  step.hook_probes = {1.5, infinity, -infinity, std::nan("")};
  step.name = "nan";
  const auto back = dist::from_text(dist::to_text(step)).get<dist::StepOnRank>();
  REQUIRE(back.hook_probes.size() == 4);
  CHECK(back.hook_probes[0] == 1.5);
  CHECK(back.hook_probes[1] == infinity);
  CHECK(back.hook_probes[2] == -infinity);
  CHECK(std::isnan(back.hook_probes[3]));
  CHECK(back.name == "nan");
}

TEST_CASE("names in words stop at the given number; the odd ranks are those unlike most, or unlike rank 0") {
  const std::vector<dist::ParameterVerdict> parameters{{"a", 1, {}, {}}, {"b", 1, {}, {}}, {"c", 1, {}, {}}};
  CHECK(dist::names_in_words(parameters) == "a, b, c");
  CHECK(dist::names_in_words(parameters, 1) == "a and 2 more");
  CHECK(dist::names_in_words({}) == "");
  CHECK(dist::odd_ranks(std::vector<int>{1, 2, 2}) == std::vector<int>{0});
  CHECK(dist::odd_ranks(std::vector<int>{1, 2}) == std::vector<int>{1});
  CHECK(dist::odd_ranks(std::vector<int>{5, 5}).empty());
}

TEST_CASE("a text in JSON has its quotes, backslashes and control characters escaped") {
  CHECK(dist::json_string("a \"b\" \\c\n\x1f\x7f\xC3\xA9") == "\"a \\\"b\\\" \\\\c\\u000a\\u001f\x7f\xC3\xA9\"");
}

}  // namespace brigade::test::verdict_text_test
