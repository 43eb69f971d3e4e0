// The kinds of verdicts from their evidence, without ranks. Each has a healthy twin, which must give no verdict. The
// kinds at the end of a backward, which find their evidence themselves, are in advice_threads_test.cpp.
#include <brigade/brigade.h>
#include <brigade/dist/checks/gradient_values.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/diagnosis/report.h>
#include <brigade/dist/diagnosis/wire.h>
#include <brigade/dist/errors/collective.h>

#include <doctest/doctest.h>

#include <limits>

namespace brigade::test::verdict_kinds_test {
using dist::CauseKind;
using dist::Severity;

const dist::Moment kMoment{.iteration = 7, .where = SourceLocation::current(), .ranks = 4};
std::vector<dist::NamedParameter> three_parameters() {
  return {{"a.weight", zeros({4})}, {"b.weight", zeros({2})}, {"c", zeros({1})}};
}

TEST_CASE("hook_result: a sum and a mean that was divided twice are reported, a lossy mean is not") {
  dist::HookResult found{.hook = "mine",
                         .bucket = "bucket 2 of DDP(Net)",
                         .expected_probe = 2,
                         .found_probe = 8,
                         .norm = 3,
                         .parameters = {{"a", 16, {}, {}}}};
  const auto sum = dist::hook_result(found, kMoment);
  REQUIRE(sum.has_value());
  CHECK(sum->kind == "hook_result");
  CHECK(sum->cause.kind == CauseKind::WrongScale);
  CHECK(sum->cause.op == "mine");
  CHECK(sum->ranks == std::vector<int>{0, 1, 2, 3});
  CHECK(sum->parameters[0].ready_ranks == sum->ranks);
  CHECK(sum->message.starts_with("Wrong result of hook `mine`: bucket 2 of DDP(Net), on all ranks, in backward 7 at "));
  found.found_probe = 0.5;
  CHECK(dist::hook_result(found, kMoment)->cause.text.find("gives 1/4 of the mean") != std::string::npos);
  found.found_probe = 4;
  CHECK(dist::hook_result(found, kMoment)
            ->cause.text.find("gives 2 x the mean of the ranks' gradients, like a sum over 4 "
                              "ranks that is divided by 2") != std::string::npos);
  for (const double lossy : {1.0, 1.7, 2.0, -2.0, 3.9, 4.1, 6.0}) {
    found.found_probe = lossy;
    CHECK(!dist::hook_result(found, kMoment).has_value());
  }
  // A probe near 0 says nothing about the scale.
  found.expected_probe = 0.02;
  found.found_probe = 0.08;
  CHECK(!dist::hook_result(found, kMoment).has_value());
  found.found_probe = std::numeric_limits<double>::infinity();
  CHECK(dist::hook_result(found, kMoment)->cause.kind == CauseKind::Overflow);
  found.was_finite = false;
  CHECK(!dist::hook_result(found, kMoment).has_value());
}

TEST_CASE("modes_differ: the layers that evaluate on some ranks only, by those that are in the minority") {
  std::vector<dist::StepOnRank> steps(3, {"step 1 of SGD", {"a.cpp", 5}, "", "1", {}});
  steps[2].evaluating = {"norm"};
  CHECK(!dist::modes_differ(steps).has_value());  // no rank has checked the modes
  for (dist::StepOnRank& step : steps)
    step.modes_are_known = true;
  const auto forgotten = dist::modes_differ(steps);
  REQUIRE(forgotten.has_value());
  CHECK(forgotten->kind == "modes_differ");
  CHECK(forgotten->ranks == std::vector<int>{2});
  steps[1].evaluating = {"drop", "norm"};
  CHECK(dist::modes_differ(steps)->ranks == std::vector<int>{1});  // `drop` is the first
  steps[1].evaluating = {"norm"};
  CHECK(dist::modes_differ(steps)->ranks == std::vector<int>{0});  // the one that trains
  steps[0].evaluating = {"norm"};
  CHECK(!dist::modes_differ(steps).has_value());
}

TEST_CASE("parameters_differ: the ranks against most are blamed, and of two none is") {
  dist::DifferentValues found{.what = "parameter", .name = "b.weight", .bytes = 8, .odd = {1}, .others = {0, 2}};
  dist::Verdict verdict = dist::parameters_differ(found, {});
  CHECK(verdict.ranks == std::vector<int>{1});
  CHECK(verdict.message.starts_with(
      "Parameters differ between the ranks: b.weight is not the same on rank 1 as on ranks 0 and 2"));
  CHECK(verdict.parameters[0].missing_ranks == std::vector<int>{1});
  found.others = {0};
  found.details = "first at element 0 of [2]: rank 0 holds 1, rank 1 holds 2";
  verdict = dist::parameters_differ(found, {});
  CHECK(verdict.ranks.empty());
  CHECK(verdict.parameters[0].missing_ranks.empty());
  CHECK(verdict.cause.text == "first at element 0 of [2]: rank 0 holds 1, rank 1 holds 2");
}

TEST_CASE("rank_lost: a rank whose word has not come has called collectives, where the others are past their first") {
  dist::CollectiveInfo waiting;
  waiting.sequence = 7;
  const dist::RankStatus lost{.rank = 1};
  CHECK(dist::rank_lost(waiting, lost, {dist::Departure::How::Died, "process 12 has ended"})
            .message.find("what rank 1 did last is not known") != std::string::npos);
  waiting.sequence = 1;
  CHECK(dist::rank_lost(waiting, lost, {dist::Departure::How::Died, "process 12 has ended"})
            .message.find("rank 1 has not called any collective") != std::string::npos);
}

TEST_CASE("gradients_edited names the edit that not every rank made") {
  dist::StepOnRank usual{"step 1 of SGD", {"a.cpp", 5}, "", "111", {{"a.weight", "mul_", {"a.cpp", 3}}}};
  std::vector<dist::StepOnRank> steps(2, usual);
  std::vector<dist::GradientsApart> apart;
  for (const dist::NamedParameter& each : three_parameters())
    apart.push_back({each, {}});
  CHECK(dist::gradients_edited(steps, {}).empty());
  const auto alike = dist::gradients_edited(steps, apart);
  REQUIRE(alike.size() == 1);
  CHECK(alike[0].cause.text.find("on every rank to other values") != std::string::npos);
  steps[1].edits.push_back({"b.weight", "clamp_", {"a.cpp", 4}});
  const auto verdict = dist::gradients_edited(steps, apart);
  REQUIRE(verdict.size() == 1);
  CHECK(verdict[0].ranks == std::vector<int>{1});
  CHECK(verdict[0].cause.op == "clamp_");
  CHECK(verdict[0].cause.place.line == 4);
  CHECK(verdict[0].cause.module == "b");
  REQUIRE(verdict[0].parameters.size() == 1);
  CHECK(verdict[0].parameters[0].bytes == 8);
  // Of several edits on that rank none is passed over.
  steps[1].edits.push_back({"b.weight", "mul_", {"a.cpp", 6}});
  steps[1].edits.push_back({"c", "zero_", {"a.cpp", 7}});
  const auto two = dist::gradients_edited(steps, apart);
  REQUIRE(two.size() == 2);
  CHECK(two[0].parameters.size() == 1);
  CHECK(two[1].cause.place.line == 7);
  CHECK(two[1].parameters[0].name == "c");
  // Gradients that the same lines edited share one verdict.
  steps[1].edits.back() = {"c", "clamp_", {"a.cpp", 4}};
  steps[1].edits.push_back({"c", "mul_", {"a.cpp", 6}});
  REQUIRE(dist::gradients_edited(steps, apart).size() == 1);
  CHECK(dist::gradients_edited(steps, apart)[0].parameters.size() == 2);
  CHECK(dist::gradients_edited(steps, apart)
            .at(0)
            .cause.text.starts_with("clamp_ at a.cpp:4, then mul_ at a.cpp:6 changed"));
  // A round trip through the text that another rank receives.
  const dist::StepOnRank back = dist::from_text(dist::to_text(steps[1])).get<dist::StepOnRank>();
  CHECK(back.edits[1].where == Place("a.cpp", 4));
  CHECK(back.gradients == "111");
}

TEST_CASE("gradients_edited names what each rank did where the lines differ, and first what only one of them did") {
  // Both scale, at lines of their own; rank 1 adds something.
  std::vector<dist::StepOnRank> steps(2, {"step 1 of SGD", {"a.cpp", 5}, "", "111", {}});
  steps[0].edits = {{"a.weight", "mul_", {"a.cpp", 3}}};
  steps[1].edits = {{"a.weight", "mul_", {"a.cpp", 7}}, {"a.weight", "add_", {"a.cpp", 8}}};
  const std::vector<dist::GradientsApart> apart = {{three_parameters().front(), {}}};
  const auto verdict = dist::gradients_edited(steps, apart);
  REQUIRE(verdict.size() == 1);
  CHECK(verdict[0].ranks == std::vector<int>{0, 1});
  CHECK(verdict[0].cause.op == "add_");
  CHECK(verdict[0].cause.place.line == 8);
  CHECK(
      verdict[0].cause.text ==
      "mul_ at a.cpp:3 (rank 0), mul_ at a.cpp:7, then add_ at a.cpp:8 (rank 1) changed values after the reduction, and not on "
      "every rank alike");
  // If both have only scaled, neither line is more suspect.
  steps[1].edits.pop_back();
  const auto alike = dist::gradients_edited(steps, apart);
  REQUIRE(alike.size() == 1);
  CHECK(alike[0].cause.text.starts_with("mul_ at a.cpp:3 (rank 0), mul_ at a.cpp:7 (rank 1) changed"));
  CHECK(alike[0].parameters.size() == 1);
}

TEST_CASE("gradients_edited: of an edit that all ranks make the ranks are blamed whose values are unlike most") {
  std::vector<dist::StepOnRank> steps(3, {"step 1 of SGD", {"a.cpp", 5}, "", "111", {}});
  for (dist::StepOnRank& step : steps)
    step.edits = {{"a.weight", "clip_grad_norm_", {"a.cpp", 3}}};
  const auto verdict = dist::gradients_edited(steps, std::vector<dist::GradientsApart>{{three_parameters()[0], {2}}});
  REQUIRE(verdict.size() == 1);
  CHECK(verdict[0].ranks == std::vector<int>{2});
  CHECK(verdict[0].cause.text.ends_with("on rank 2 to other values than on the others"));
}

TEST_CASE("gradients_edited: an edit that one rank leaves out says more than one that all make") {
  const std::vector<dist::StepOnRank::Edit> unscaled = {{"a.weight", "unscale_", {"a.cpp", 3}}};
  std::vector<dist::StepOnRank> steps(3, {"step 1 of SGD", {"a.cpp", 5}, "", "111", unscaled});
  for (const size_t r : {0U, 1U})
    steps[r].edits.push_back({"a.weight", "clip_grad_norm_", {"a.cpp", 4}});
  const auto verdict = dist::gradients_edited(steps, std::vector<dist::GradientsApart>{{three_parameters()[0], {2}}});
  REQUIRE(verdict.size() == 1);
  CHECK(verdict[0].cause.op == "clip_grad_norm_");
  CHECK(verdict[0].cause.place.line == 4);
}

TEST_CASE("gradients_set_by_hand: of ranks that have all set one those are blamed whose values are unlike most") {
  std::vector<dist::StepOnRank> steps(3, {"step 1 of SGD", {"a.cpp", 5}, "", "111", {}});
  for (dist::StepOnRank& step : steps)
    step.set_by_hand = {{"a.weight", {"a.cpp", 3}}};
  const auto blamed = [&](std::vector<int> odd) {
    const auto verdicts =
        dist::gradients_set_by_hand(steps, std::vector<dist::GradientsApart>{{three_parameters()[0], std::move(odd)}});
    return verdicts.size() == 1 ? verdicts[0].ranks : std::vector<int>{-1};
  };
  CHECK(blamed({2}) == std::vector<int>{2});
  CHECK(blamed({}) == std::vector<int>{0, 1, 2});
  // The rank that differs from the others is the one that has set no gradient.
  steps[2].set_by_hand.clear();
  CHECK(blamed({2}) == std::vector<int>{0, 1});
}

TEST_CASE("parameters_written has a verdict for each line that wrote to what differs") {
  std::vector<dist::StepOnRank> steps(2, {"step 1 of SGD", {"a.cpp", 5}, "", "111", {}});
  steps[1].writes = {
      {"a.weight", "copy_", {"a.cpp", 3}}, {"b.weight", "mul_", {"a.cpp", 4}}, {"c", "copy_", {"a.cpp", 3}}};
  std::vector<dist::GradientsApart> apart;
  for (const dist::NamedParameter& each : three_parameters())
    apart.push_back({each, {}});
  const auto verdicts = dist::parameters_written(steps, apart);
  REQUIRE(verdicts.size() == 2);
  CHECK(verdicts[0].cause.place.line == 3);
  CHECK(verdicts[0].parameters.size() == 2);
  CHECK(verdicts[1].cause.place.line == 4);
  CHECK(verdicts[1].parameters[0].name == "b.weight");
}

TEST_CASE("parameters_written names the first write to what differs, and its ranks") {
  std::vector<dist::StepOnRank> steps(3, {"step 1 of SGD", {"a.cpp", 5}, "", "111", {}});
  steps[2].writes = {{"a.weight", "copy_", {"a.cpp", 3}}, {"b.weight", "mul_", {"a.cpp", 4}}};
  const auto parameters = three_parameters();
  CHECK(dist::parameters_written(steps, {}).empty());
  CHECK(dist::parameters_written(steps, std::vector<dist::GradientsApart>{{parameters[2], {}}}).empty());
  const auto verdict = dist::parameters_written(steps, std::vector<dist::GradientsApart>{{parameters[1], {2}}});
  REQUIRE(verdict.size() == 1);
  CHECK(verdict[0].ranks == std::vector<int>{2});
  CHECK(verdict[0].cause.op == "mul_");
  CHECK(verdict[0].cause.place.line == 4);
  REQUIRE(verdict[0].parameters.size() == 1);
  CHECK(verdict[0].parameters[0].name == "b.weight");
  // Other ranks have written what all of them hold.
  steps[0].writes = steps[1].writes = {{"b.weight", "copy_", {"a.cpp", 7}}};
  const auto odd = dist::parameters_written(steps, std::vector<dist::GradientsApart>{{parameters[1], {2}}});
  REQUIRE(odd.size() == 1);
  CHECK(odd[0].ranks == std::vector<int>{2});
  const auto unclear = dist::parameters_written(steps, std::vector<dist::GradientsApart>{{parameters[1], {}}});
  REQUIRE(unclear.size() == 1);
  CHECK(unclear[0].ranks == std::vector<int>{0, 1, 2});
  CHECK(unclear[0].cause.text.starts_with(
      "copy_ at a.cpp:7 (ranks 0 and 1), mul_ at a.cpp:4 (rank 2) wrote outside the optimizer"));
}

TEST_CASE("gradients_edited passes over edits that have changed nothing") {
  // Of four ranks, rank 1 has other values; it and two others scale by numbers that cancel out.
  const dist::StepOnRank::Edit vain{"a.weight", "mul_", {"a.cpp", 3}};
  const dist::StepOnRank::Edit wrong{"a.weight", "mul_", {"a.cpp", 9}};
  std::vector<dist::StepOnRank> steps(4, {"step 1 of SGD", {"a.cpp", 5}, "", "111", {}});
  for (const size_t r : {0U, 1U, 2U})
    steps[r].edits = {vain};
  steps[1].edits.push_back(wrong);
  const std::vector<dist::GradientsApart> apart = {{three_parameters().front(), {1}}};
  const auto verdict = dist::gradients_edited(steps, apart);
  REQUIRE(verdict.size() == 1);
  CHECK(verdict[0].ranks == std::vector<int>{1});
  CHECK(verdict[0].cause.place.line == 9);
  // If the only rank without an edit is the odd one, the edits are still to blame.
  const auto most = dist::gradients_edited(steps, std::vector<dist::GradientsApart>{{three_parameters().front(), {3}}});
  REQUIRE(most.size() == 1);
  CHECK(most[0].ranks == std::vector<int>{0, 1, 2});

  const dist::GradientValues usual{0.5, 3}, odd{-0.25, 3};
  CHECK(dist::odd_among(std::vector{usual, odd, usual, usual}) == std::vector<int>{1});
  CHECK(dist::odd_among(std::vector{odd, usual, usual}) == std::vector<int>{0});
  CHECK(dist::odd_among(std::vector{odd, usual}).empty());
}

TEST_CASE("unreduced_gradients and gradients_accumulate count the backwards") {
  const dist::ParameterVerdict parameter{"w", 4, {}, {0}};
  dist::UnreducedGradient found{.backwards = 4, .local = 1};
  dist::Verdict verdict = dist::unreduced_gradients(found, parameter);
  CHECK(verdict.cause.kind == CauseKind::NotReduced);
  CHECK(verdict.cause.text.find("3 of 4 micro-batches were reduced") != std::string::npos);
  found.by_hand = true;
  CHECK(dist::unreduced_gradients(found, parameter).cause.kind == CauseKind::SetByHand);
  verdict = dist::gradients_accumulate(3, {}, {}, parameter);
  CHECK(verdict.severity == Severity::Warning);
  CHECK(verdict.cause.text.find("holds 3 backwards") != std::string::npos);
}

TEST_CASE("model_mismatch names what one rank has and most have not") {
  const std::vector<std::string> usual{"parameter `a` float32 [4]", "parameter `b` float32 [4]"};
  std::vector<std::vector<std::string>> lists{usual, {usual[0]}, usual};
  dist::Verdict verdict = dist::model_mismatch(lists, 1, {});
  CHECK(verdict.ranks == std::vector<int>{1});
  CHECK(verdict.cause.text == "only ranks 0 and 2 have parameter `b` float32 [4]");
  lists[1] = {usual[0], "parameter `b` float64 [4]"};
  verdict = dist::model_mismatch(lists, 1, {});
  CHECK(verdict.cause.text == "ranks 0 and 2 have parameter `b` float32 [4], rank 1 has parameter `b` float64 [4]");
  // Of two ranks, neither is blamed.
  lists.pop_back();
  verdict = dist::model_mismatch(lists, 1, {});
  CHECK(verdict.ranks.empty());
  CHECK(verdict.cause.text == "rank 0 has parameter `b` float32 [4], rank 1 has parameter `b` float64 [4]");
  const std::vector<std::vector<std::string>> set_at{{"a.cpp:3", "a.cpp:4"}, {"a.cpp:7", "a.cpp:7"}};
  CHECK(!dist::frozen_on_some_ranks(lists, set_at, {}));
  lists[1] = {usual[0] + " frozen", usual[1] + " frozen"};
  verdict = *dist::frozen_on_some_ranks(lists, set_at, {});
  CHECK(verdict.cause.text ==
        "`a` is trained on rank 0 (set at a.cpp:3) and frozen on rank 1 (set at a.cpp:7), and 1 more");
  CHECK(verdict.advice.starts_with("freeze and unfreeze the same parameters on every rank"));
  CHECK(verdict.parameters.size() == 2);
}

TEST_CASE("unmanaged_parameters: outside, replaced, thawed, added") {
  for (const auto& [kind, part] :
       {std::pair{CauseKind::OutsideWrapper, "belongs to no wrapped module"},
        std::pair{CauseKind::Replaced, "the wrapper holds the old object"},
        std::pair{CauseKind::Thawed, "trainable since"}, std::pair{CauseKind::Added, "was added after wrapping"}}) {
    const dist::Verdict verdict = dist::unmanaged_parameters(
        {.kind = kind, .name = "head.weight", .bytes = 12, .optimizer = "SGD", .at = SourceLocation::current()});
    CHECK(verdict.kind == "unmanaged_parameters");
    CHECK(verdict.cause.kind == kind);
    CHECK(verdict.cause.text.find(part) != std::string::npos);
    CHECK(verdict.cause.module == "head");
    CHECK(verdict.cause.place);
    CHECK(!verdict.advice.empty());
  }
}

TEST_CASE("what one rank has frozen is to be frozen on all or none: no branch is spoken of") {
  const std::string advice = dist::advice_for(CauseKind::Frozen, true);
  CHECK(advice.starts_with("freeze it on every rank or on none"));
  CHECK(dist::advice_for(CauseKind::Frozen, false).find("on none") == std::string::npos);
  CHECK(dist::advice_for(CauseKind::NotUsed, true).starts_with("take the same branch on every rank"));
}

TEST_CASE("unmanaged_parameters: the parameters of one line have one cause") {
  const SourceLocation line = SourceLocation::current();
  const auto weight = dist::unmanaged_parameters({.name = "a.weight", .bytes = 12, .optimizer = "SGD", .at = line});
  const auto bias = dist::unmanaged_parameters({.name = "a.bias", .bytes = 4, .optimizer = "SGD", .at = line});
  CHECK(weight.cause.same_as(bias.cause));
  CHECK(weight.advice.find("wrap its module too") != std::string::npos);
}

TEST_CASE("static_graph_changed: parameters that changed alike are one paragraph, others another") {
  const auto parameters = three_parameters();
  dist::RankReport report{.rank = 0, .round = 2, .ready = {false, false, false}};
  report.recorded = {true, true, true};
  for (const uint32_t i : {0U, 1U, 2U}) {
    report.causes[i].kind = CauseKind::ModuleNotCalled;
    report.causes[i].text = i < 2 ? "a was not called" : "b was not called";
  }
  const std::vector<dist::Verdict> verdicts = dist::static_graph_changed(std::vector{report}, parameters, {});
  REQUIRE(verdicts.size() == 2);
  CHECK(verdicts[0].parameters.size() == 2);
  CHECK(verdicts[1].parameters.size() == 1);
  CHECK(verdicts[0].cause.note == "a was not called");
}

TEST_CASE("hook_result: a probe that is too small to tell by itself tells where the hook is wrong elsewhere") {
  const dist::Moment moment{.iteration = 1, .where = SourceLocation::current(), .ranks = 3};
  const auto finding = [&](double expected, double found, bool elsewhere) {
    const auto verdict = dist::hook_result({.hook = "own",
                                            .bucket = "bucket 0",
                                            .expected_probe = expected,
                                            .found_probe = found,
                                            .norm = 1,
                                            .parameters = {}},
                                           moment, elsewhere);
    return verdict ? verdict->cause.text : std::string();
  };
  CHECK(finding(0.5, 1.5, false).find("gives 3 x the mean") != std::string::npos);
  CHECK(finding(1e-4, 3e-4, false).empty());
  CHECK(finding(1e-4, 3e-4, true).find("gives 3 x the mean") != std::string::npos);
  CHECK(finding(1e-4, 1e-4, true).empty());
  CHECK(finding(1e-4, 2e-4, true).empty());
}

TEST_CASE(
    "unused_parameters: a note that does not hold of all parameters, or ranks, with one cause says of whom it is") {
  const auto parameters = three_parameters();
  dist::Cause cause;
  cause.kind = CauseKind::LossNotConnected;
  cause.text = "the loss does not depend on the module at all";
  cause.note = "ready in backwards 1 to 3, not in 4";
  dist::RankReport report{.rank = 0, .round = 4, .ready = {false, false, true}};
  report.causes = {{0, cause}, {1, cause}};
  const dist::ErrorContext context{.expected = {1, 1, 1}};
  const auto noted = [&](std::vector<dist::RankReport> reports) {
    const std::vector<dist::Verdict> verdicts = dist::unused_parameters(reports, parameters, context);
    return verdicts.size() == 1 && verdicts[0].parameters.size() == 2 ? verdicts[0].cause.note : "not one verdict";
  };
  CHECK(noted({report}) == "ready in backwards 1 to 3, not in 4");
  dist::RankReport other = report;
  other.rank = 1;
  CHECK(noted({report, other}) == "ready in backwards 1 to 3, not in 4");
  for (const uint32_t i : {0U, 1U})
    other.causes[i].note = "ready in backward 1, not since 2";
  CHECK(noted({report, other}) == "ready in backwards 1 to 3, not in 4; on rank 1: ready in backward 1, not since 2");
  report.causes[1].note = "ready in backward 2, not since 3";
  CHECK(noted({report}) == "of a.weight: ready in backwards 1 to 3, not in 4");
}

TEST_CASE("collective_timeout points at what the missing rank does, or else at its last collective") {
  const dist::CollectiveInfo waiting{.sequence = 4, .where = {"train.cpp", 30}};
  const dist::CollectiveInfo last{.sequence = 3, .where = {"train.cpp", 20}};
  std::vector<dist::RankStatus> missing{{.rank = 2,
                                         .last = last,
                                         .activity = {.doing = dist::Doing::Program,
                                                      .where = {dist::Name("data.cpp"), 7},
                                                      .text = "loading data, at length"},
                                         .activity_seconds = 1.5}};
  dist::Verdict verdict = dist::collective_timeout(waiting, missing);
  CHECK(verdict.cause.place == Place("data.cpp", 7));
  CHECK(verdict.message ==
        "Rank 2 did not come to barrier at train.cpp:30 (collective 4).\nwhy: rank 2 was last in barrier at line 20 "
        "(collective 3), and for 1.5 s in loading data, at length at data.cpp:7.");
  missing[0].activity = {};
  verdict = dist::collective_timeout(waiting, missing);
  CHECK(verdict.cause.place == Place("train.cpp", 20));
  CHECK(verdict.message.ends_with("rank 2 was last in barrier at line 20 (collective 3)."));
  missing[0].last = {};
  CHECK(!dist::collective_timeout(waiting, missing).cause.place);
}

}  // namespace brigade::test::verdict_kinds_test
